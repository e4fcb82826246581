package aggregator

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// shadowed counts the result of a shadow hook, and what it would have changed.
func (a *Aggregator) shadowed(req *dispatch.Request, s *dispatch.Shadowed) {
	for i := range s.Part.ExecutedHooks {
		a.report.Metrics.Executed(&s.Part.ExecutedHooks[i])
	}
	a.report.Metrics.Shadowed(s)
	a.report.Shadows.Add(req.ID, s)
	a.report.Feed.Shadowed(&req.Routing, s)
}

// stats adds what shadow hooks would have changed to the statistics that the
// service answers with, so that every broker can sum up all of them.
func (a *Aggregator) stats(e *micro.Endpoint) any {
	if e.Name != statusVerb {
		return nil // once is enough
	}
	return a.report.Shadows.Status()
}

// peerStats is the part of a broker's statistics that the aggregator uses.
type peerStats struct {
	ID        string            `json:"id"`
	Metadata  map[string]string `json:"metadata"`
	Endpoints []struct {
		Data []schema.ShadowStatus `json:"data"`
	} `json:"endpoints"`
}

// ShadowStatus returns what shadow hooks would have changed, in all brokers together. It leaves out
// brokers that do not answer in time.
func (a *Aggregator) ShadowStatus(ctx context.Context) ([]schema.ShadowStatus, error) {
	sum := a.report.Shadows.Status()
	own := a.control.face.Info().ID
	err := a.peers(ctx, micro.StatsVerb, func(m *nats.Msg) {
		var peer peerStats
		if schema.Unmarshal(m.Data, &peer) != nil || peer.ID == own || peer.Metadata["fabric"] != a.opt.Fabric {
			return
		}
		for _, e := range peer.Endpoints {
			for _, h := range e.Data {
				sum = observe.AddShadow(sum, h)
			}
		}
	})
	observe.SortShadows(sum)
	return sum, err
}
