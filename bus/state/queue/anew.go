package queue

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// rewind removes from cursors what they have about items after the last one. The bucket of items was deleted,
// or lost its end in a power failure, and gives the same sequences to new items. During seconds after the death
// of a leader the bucket may only seem to end earlier, so a write proves its end.
func (q *Queue) rewind(ctx context.Context) error {
	far := q.ahead(q.items.mirror.Revision())
	if len(far) == 0 {
		return nil
	}
	mark := kv.Write{Key: allScope + ".fabric." + nameless + uuid.NewString(), Blind: true, Purge: true, TTL: lapsedFor}
	last, err := kv.Patiently(ctx, "finding the end of the bucket", kv.Passing, func(ctx context.Context) (uint64, error) {
		return q.items.Prove(ctx, mark)
	})
	if err == nil {
		err = q.items.mirror.Reach(ctx, last)
	}
	// Cursors that were newer than that may have been written after the proof.
	far = slices.DeleteFunc(far, func(f ahead) bool { return f.knew.At <= last })
	if err == nil && len(far) > 0 {
		q.log.Warn("cursors refer to items that the bucket does not have; check whether the bucket was deleted", "agents", len(far), "bucket", ItemBucket, "last", last)
	}
	for i := 0; i < len(far) && err == nil; i++ {
		err = q.rewindOne(ctx, far[i], last)
	}
	if err != nil {
		return fmt.Errorf("taking out of cursors what is not in the bucket %s any more: %w", ItemBucket, err)
	}
	return nil
}

// An ahead is an agent whose cursor has items that this broker does not.
type ahead struct {
	*agent
	knew *known
}

// ahead returns the agents whose cursors have items after the last one.
func (q *Queue) ahead(last uint64) (far []ahead) {
	q.agents.each(func(a *agent) {
		if k := a.cursor.Load(); k.At > last {
			far = append(far, ahead{a, k})
		}
	})
	return far
}

func (q *Queue) rewindOne(ctx context.Context, f ahead, last uint64) error {
	cur := f.knew.begin()
	cur.rewind(last)
	value, err := schema.Marshal(&cur)
	if err != nil {
		return err
	}
	revision, err := q.cursors.Write(ctx, kv.Write{Key: f.token, Value: value, Last: f.knew.revision})
	switch {
	case err == nil:
		f.take(&known{cursor: cur, revision: revision, seen: f.knew.seen, created: q.clock.Now()})
	case kv.Refused(err): // another broker does the same
		err = nil
	}
	return err
}

// rewind removes everything after the last sequence.
func (c *cursor) rewind(last uint64) {
	beyond := func(seq uint64) bool { return seq > last }
	c.At, c.AckedTo = min(c.At, last), min(c.AckedTo, last)
	c.Since = min(c.Since, last+1)
	c.Peers.rewind(last)
	c.DoneAbove = slices.DeleteFunc(c.DoneAbove, beyond)
	c.Ends = slices.DeleteFunc(c.Ends, func(e ending) bool { return beyond(e.Seq) })
	for i := range c.Leases {
		c.Leases[i].Seqs = slices.DeleteFunc(c.Leases[i].Seqs, beyond)
	}
	c.Leases = slices.DeleteFunc(c.Leases, func(l lease) bool { return len(l.Seqs) == 0 })
}
