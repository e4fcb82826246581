package aggregator

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/schema"
)

// The results for a part of a conversation, as labels in metrics.
const (
	partStored  = "stored"
	partKnown   = "known"
	partUnknown = "unknown"
	partRefused = "refused"
)

func keptResults() []string { return []string{partStored, partKnown, partUnknown, partRefused} }

// keepPart stores a part of an agent's conversation in the store of histories, or reports whether
// the part is stored. That store has bounds of its own. When it is full, items for agents still
// find room.
func (a *Aggregator) keepPart(ctx context.Context, agent string, req *schema.KeepRequest) (*schema.KeepAnswer, error) {
	store := a.opt.Memory.Histories
	switch {
	case store == nil:
		a.report.Metrics.Histories.WithLabelValues(partRefused).Inc()
		return nil, unavailable("this broker does not store conversations")
	case len(req.Data) > schema.MaxPart:
		return nil, badRequest("data has %d bytes, and a part at most %d; split the conversation into more parts", len(req.Data), schema.MaxPart)
	case len(req.Data) == 0 && req.Digest == "":
		return nil, badRequest("data and digest are missing; send data to store a part, or digest to ask for one")
	case len(req.Data) == 0:
		return a.known(ctx, agent, schema.Object{Digest: req.Digest, Size: req.Size})
	case !a.control.histories.take(agent, int64(len(req.Data)), time.Now()):
		a.report.Metrics.Histories.WithLabelValues(partRefused).Inc()
		a.intake.limits.refused(agent, limitHistory)
		return nil, unavailable(fmt.Sprintf("the agent stored %d MiB of conversations within %s through one broker, which is its limit (--agent-history-bytes); "+
			"store only new parts", a.control.histories.most>>20, a.control.histories.per))
	}
	o, err := store.Put(ctx, bytes.NewReader(req.Data))
	if err != nil {
		a.control.histories.refund(agent, int64(len(req.Data)))
		a.unstoredPart(agent, err)
		return nil, err
	}
	a.report.Metrics.Histories.WithLabelValues(partStored).Inc()
	a.report.Log.Reachable(observe.HistoryStore)
	if req.Digest != "" && req.Digest != o.Digest {
		return nil, badRequest("the digest of data is %s, and the request says %.80q; send the digest of data", o.Digest, req.Digest)
	}
	return &schema.KeepAnswer{Digest: o.Digest, Size: o.Size, Known: true}, nil
}

// known reports whether a part is stored for long enough to be named.
func (a *Aggregator) known(ctx context.Context, agent string, o schema.Object) (*schema.KeepAnswer, error) {
	fresh, err := a.opt.Memory.Histories.Fresh(ctx, o)
	if err != nil {
		a.unstoredPart(agent, err)
		return nil, err
	}
	result := partUnknown
	if fresh {
		result = partKnown
	}
	a.report.Metrics.Histories.WithLabelValues(result).Inc()
	return &schema.KeepAnswer{Digest: o.Digest, Size: o.Size, Known: fresh}, nil
}

// toldOfPart is how much of a part one answer carries: as much as a NATS server accepts by default.
const toldOfPart = 512 << 10

// storedPart reads a part of a conversation, for the workers. Only a worker that received an event
// with its digest can name the part.
func (a *Aggregator) storedPart(ctx context.Context, agent string, req *schema.PartRequest) (*schema.FetchAnswer, error) {
	store := a.opt.Memory.Histories
	switch {
	case agent != "":
		return nil, badRequest("a part is named by its digest alone; send the request to hook.v1.ctl.%s._", schema.VerbPart)
	case store == nil:
		return nil, unavailable("this broker does not store conversations")
	}
	data, size, err := store.Part(ctx, req.Digest, req.Offset)
	if err != nil {
		return nil, err
	}
	return &schema.FetchAnswer{Data: data[:min(len(data), toldOfPart)], Size: size}, nil
}

// unstoredPart counts a part that could not be stored, and logs the failure once.
func (a *Aggregator) unstoredPart(agent string, err error) {
	a.report.Metrics.Histories.WithLabelValues(partRefused).Inc()
	a.opt.Logger.Debug("cannot store a part of a conversation", "agent", agent, "error", err)
	a.report.Log.Unreachable(observe.HistoryStore, err)
}
