package control

import (
	"bytes"
	"context"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator/internal/intake"
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

// PartResults returns all of them.
func PartResults() []string { return []string{partStored, partKnown, partUnknown, partRefused} }

// keepPart stores a part of an agent's conversation in the store of histories, or reports whether
// the part is stored. That store has bounds of its own. When it is full, items for agents still
// find room.
func (c *Control) keepPart(ctx context.Context, agent string, req *schema.KeepRequest) (*schema.KeepAnswer, error) {
	store := c.opt.Histories
	switch {
	case store == nil:
		c.opt.Report.Metrics.Histories.WithLabelValues(partRefused).Inc()
		return nil, unavailable("this broker does not store conversations")
	case len(req.Data) > schema.MaxPart:
		return nil, badRequest("data has %d bytes, and a part at most %d; split the conversation into more parts", len(req.Data), schema.MaxPart)
	case len(req.Data) == 0 && req.Digest == "":
		return nil, badRequest("data and digest are missing; send data to store a part, or digest to ask for one")
	case len(req.Data) == 0:
		return c.known(ctx, agent, schema.Object{Digest: req.Digest, Size: req.Size})
	case !c.histories.Take(agent, int64(len(req.Data)), time.Now()):
		c.opt.Report.Metrics.Histories.WithLabelValues(partRefused).Inc()
		c.opt.Limits.Refused(agent, intake.LimitHistory)
		return nil, unavailable("the agent stored %d MiB of conversations within %s through one broker, which is its limit (--agent-history-bytes); "+
			"store only new parts", c.histories.Most>>20, c.histories.Per)
	}
	o, err := store.Put(ctx, bytes.NewReader(req.Data))
	if err != nil {
		c.histories.Refund(agent, int64(len(req.Data)))
		c.unstoredPart(agent, err)
		return nil, err
	}
	c.opt.Report.Metrics.Histories.WithLabelValues(partStored).Inc()
	c.opt.Report.Log.Reachable(observe.HistoryStore)
	if req.Digest != "" && req.Digest != o.Digest {
		return nil, badRequest("the digest of data is %s, and the request says %.80q; send the digest of data", o.Digest, req.Digest)
	}
	return &schema.KeepAnswer{Digest: o.Digest, Size: o.Size, Known: true}, nil
}

// known reports whether a part is stored for long enough to be named.
func (c *Control) known(ctx context.Context, agent string, o schema.Object) (*schema.KeepAnswer, error) {
	fresh, err := c.opt.Histories.Fresh(ctx, o)
	if err != nil {
		c.unstoredPart(agent, err)
		return nil, err
	}
	result := partUnknown
	if fresh {
		result = partKnown
	}
	c.opt.Report.Metrics.Histories.WithLabelValues(result).Inc()
	return &schema.KeepAnswer{Digest: o.Digest, Size: o.Size, Known: fresh}, nil
}

// maxPartAnswer is how much of a part one answer carries: as much as a NATS server accepts by default.
const maxPartAnswer = 512 << 10

// storedPart reads a part of a conversation, for the workers. Only a worker that received an event
// with its digest can name the part.
func (c *Control) storedPart(ctx context.Context, _ string, req *schema.PartRequest) (*schema.FetchAnswer, error) {
	store := c.opt.Histories
	if store == nil {
		return nil, unavailable("this broker does not store conversations")
	}
	data, size, err := store.Part(ctx, req.Digest, req.Offset)
	if err != nil {
		return nil, err
	}
	return &schema.FetchAnswer{Data: data[:min(len(data), maxPartAnswer)], Size: size}, nil
}

// unstoredPart counts a part that could not be stored, and logs the failure once.
func (c *Control) unstoredPart(agent string, err error) {
	c.opt.Report.Metrics.Histories.WithLabelValues(partRefused).Inc()
	c.opt.Logger.Debug("cannot store a part of a conversation", "agent", agent, "error", err)
	c.opt.Report.Log.Unreachable(observe.HistoryStore, err)
}
