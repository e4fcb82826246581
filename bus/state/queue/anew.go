package queue

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// rewind takes out of cursors what they say of items beyond the last one: the
// bucket of items was deleted, or lost its end with its disk's power, and gives
// the same sequences to other items. Who tells how far it goes may only be behind, as
// all are for seconds after a leader died; where something is stored now everybody knows.
func (q *Queue) rewind(ctx context.Context) error {
	if len(q.beyond(q.items.mirror.Revision())) == 0 {
		return nil
	}
	next, err := q.items.Write(ctx, kv.Write{Key: allScope + ".fabric." + nameless + uuid.NewString(), Blind: true, Purge: true, TTL: lapsedFor})
	if err == nil {
		err = q.items.mirror.Reach(ctx, next)
	}
	far := q.beyond(next - 1)
	if err == nil && len(far) > 0 {
		q.log.Warn("cursors know items that the bucket does not hold; was it deleted?", "agents", len(far), "bucket", ItemBucket, "last", next-1)
	}
	for i := 0; i < len(far) && err == nil; i++ {
		err = q.rewindOne(ctx, far[i], next-1)
	}
	if err != nil {
		return fmt.Errorf("taking out of cursors what is not in the bucket %s any more: %w", ItemBucket, err)
	}
	return nil
}

// beyond are the agents whose cursors know items after that one.
func (q *Queue) beyond(last uint64) (far []*agent) {
	q.agents.each(func(a *agent) {
		if a.cursor.Load().At > last {
			far = append(far, a)
		}
	})
	return far
}

func (q *Queue) rewindOne(ctx context.Context, a *agent, last uint64) error {
	k := a.cursor.Load()
	if k.At <= last {
		return nil
	}
	cur := k.begin()
	cur.rewind(last)
	value, err := schema.Marshal(&cur)
	if err != nil {
		return err
	}
	revision, err := q.cursors.Write(ctx, kv.Write{Key: a.token, Value: value, Last: k.revision})
	switch {
	case err == nil:
		a.take(&known{cursor: cur, revision: revision, seen: k.seen, created: q.clock.Now()})
	case kv.Refused(err): // another one does the same
		err = nil
	}
	return err
}

// rewind forgets what is beyond the last sequence.
func (c *cursor) rewind(last uint64) {
	beyond := func(seq uint64) bool { return seq > last }
	c.At, c.AckedTo = min(c.At, last), min(c.AckedTo, last)
	c.Since = min(c.Since, last+1)
	c.Peers.Checkpoint = min(c.Peers.Checkpoint, last)
	c.DoneAbove = slices.DeleteFunc(c.DoneAbove, beyond)
	c.Ends = slices.DeleteFunc(c.Ends, func(e ending) bool { return beyond(e.Seq) })
	for i := range c.Leases {
		c.Leases[i].Seqs = slices.DeleteFunc(c.Leases[i].Seqs, beyond)
	}
	c.Leases = slices.DeleteFunc(c.Leases, func(l lease) bool { return len(l.Seqs) == 0 })
}
