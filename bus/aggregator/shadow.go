package aggregator

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// The bounds of what is remembered of shadow hooks, which has to fit into one
// message: a line is one hook, what was decided and what would have been.
const (
	maxShadowLines  = 2048
	maxShadowReason = 200
)

// shadowed counts what came of a shadow hook, and what it would have changed.
func (a *Aggregator) shadowed(req *dispatch.Request, s *dispatch.Shadowed) {
	for i := range s.Part.ExecutedHooks {
		a.report.metrics.executed(&s.Part.ExecutedHooks[i])
	}
	a.report.metrics.shadowed(s)
	a.report.shadows.add(req.ID, s)
	a.report.feed.shadowed(&req.Routing, s)
}

// shadows counts what the shadow hooks of the active configuration would have
// changed.
type shadows struct {
	mu    sync.Mutex
	hooks map[string]map[change]*schema.ShadowCount // guarded by mu
	lines int                                       // guarded by mu; how many there are
}

// change is what was decided, and what would have been.
type change struct{ decided, would schema.Decision }

// configure begins to count the shadow hooks of a configuration, goes on with
// those that were there before, and forgets the others.
func (s *shadows) configure(cfg *schema.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.hooks
	s.hooks, s.lines = make(map[string]map[change]*schema.ShadowCount), 0
	for i := range cfg.Hooks {
		if h := &cfg.Hooks[i]; h.Mode == schema.Shadow {
			s.hooks[h.Name] = before[h.Name]
			s.lines += len(before[h.Name])
		}
	}
}

// add counts one call.
func (s *shadows) add(event string, is *dispatch.Shadowed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes, known := s.hooks[is.Hook.Name]
	if !known {
		return // its configuration is not active any more
	}
	if changes == nil {
		changes = make(map[change]*schema.ShadowCount)
		s.hooks[is.Hook.Name] = changes
	}
	c := change{is.Decided, is.Would}
	n := changes[c]
	if n == nil {
		if s.lines >= maxShadowLines {
			return
		}
		n = &schema.ShadowCount{Decided: c.decided, Would: c.would}
		changes[c] = n
		s.lines++
	}
	n.Count++
	if c.decided != c.would && event >= n.Last { // ids begin with their time
		n.Last, n.Reason = event, shortened(is.Part.Reason)
	}
}

func shortened(reason string) string {
	if len(reason) <= maxShadowReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxShadowReason], "") + "…"
}

// status is what was counted so far.
func (s *shadows) status() []schema.ShadowStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]schema.ShadowStatus, 0, len(s.hooks))
	for name, changes := range s.hooks {
		if len(all) >= maxShadowLines {
			break
		}
		h := schema.ShadowStatus{Hook: name, Counts: make([]schema.ShadowCount, 0, len(changes))}
		for _, n := range changes {
			h.Counts = append(h.Counts, *n)
		}
		all = append(all, h)
	}
	return all
}

// stats adds what shadow hooks would have changed to the statistics that the
// service answers with, so that every broker can sum up all of them.
func (a *Aggregator) stats(e *micro.Endpoint) any {
	if e.Name != statusVerb {
		return nil // once is enough
	}
	return a.report.shadows.status()
}

// peerStats is what is used of the statistics of a broker.
type peerStats struct {
	ID        string            `json:"id"`
	Metadata  map[string]string `json:"metadata"`
	Endpoints []struct {
		Data []schema.ShadowStatus `json:"data"`
	} `json:"endpoints"`
}

// ShadowStatus is what shadow hooks would have changed, in all brokers together:
// those that do not answer in time are left out.
func (a *Aggregator) ShadowStatus(ctx context.Context) ([]schema.ShadowStatus, error) {
	sum := a.report.shadows.status()
	own := a.control.face.Info().ID
	err := a.peers(ctx, micro.StatsVerb, func(m *nats.Msg) {
		var peer peerStats
		if schema.Unmarshal(m.Data, &peer) != nil || peer.ID == own || peer.Metadata["fabric"] != a.opt.Fabric {
			return
		}
		for _, e := range peer.Endpoints {
			for _, h := range e.Data {
				sum = added(sum, h)
			}
		}
	})
	sorted(sum)
	return sum, err
}

// added is a sum with what another broker counted of one hook.
func added(sum []schema.ShadowStatus, h schema.ShadowStatus) []schema.ShadowStatus {
	i := slices.IndexFunc(sum, func(s schema.ShadowStatus) bool { return s.Hook == h.Hook })
	if i < 0 {
		return append(sum, h)
	}
	counts := sum[i].Counts
	for _, n := range h.Counts {
		j := slices.IndexFunc(counts, func(c schema.ShadowCount) bool { return c.Decided == n.Decided && c.Would == n.Would })
		if j < 0 {
			counts = append(counts, n)
			continue
		}
		counts[j].Count += n.Count
		if n.Last > counts[j].Last { // ids begin with their time
			counts[j].Last, counts[j].Reason = n.Last, n.Reason
		}
	}
	sum[i].Counts = counts
	return sum
}

// sorted puts hooks in the order of their names, and of each the most frequent
// first.
func sorted(all []schema.ShadowStatus) {
	slices.SortFunc(all, func(a, b schema.ShadowStatus) int { return cmp.Compare(a.Hook, b.Hook) })
	for i := range all {
		slices.SortFunc(all[i].Counts, func(a, b schema.ShadowCount) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Decided, b.Decided), cmp.Compare(a.Would, b.Would))
		})
	}
}
