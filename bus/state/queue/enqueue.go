package queue

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// The headers of an item's end.
const (
	headerState    = "Hook-State"
	headerSequence = "Hook-Sequence"
	headerBy       = "Hook-By"
)

// storeFor bounds one attempt to store an item. What the leader of the bucket took to the
// grave is never answered, and the next leader, which is there after some seconds, knows
// nothing of it: it is sent once more then, and stored once.
const storeFor = kv.Patient

// Enqueue accepts an item: when it returns without an error the item is on disk.
// A repeat gets the first one's receipt.
func (q *Queue) Enqueue(ctx context.Context, given *schema.Item) (schema.Receipt, error) {
	it, value, err := prepare(given)
	if err != nil {
		return schema.Receipt{}, err
	}
	if err := q.steps([]Step{StepEnqueueBegun}); err != nil {
		return schema.Receipt{}, err
	}
	if receipt, known, err := q.known(ctx, it); known || err != nil {
		return receipt, err
	}
	scope, _ := scopeToken(it.Scope)
	if err := q.admit(scope, it, len(it.Key)+len(value)); err != nil {
		// A repeat takes no room.
		if receipt, known, rerr := q.earlier(ctx, it.Key); known && rerr == nil {
			q.watch.Duplicate(it.Source)
			return receipt, nil
		}
		return schema.Receipt{}, err
	}
	defer q.index.release(scope, it)
	return q.write(ctx, it, value)
}

// known reports whether the item was accepted before, as far as that is known
// without asking, or its number was used up.
func (q *Queue) known(ctx context.Context, it *schema.Item) (r schema.Receipt, known bool, err error) {
	if e := q.index.get(it.Key); e != nil {
		q.watch.Duplicate(it.Source)
		return schema.Receipt{Key: it.Key, Sequence: e.seq(), Duplicate: true, State: q.state(e)}, true, nil
	}
	mark := q.marks.of(it.Key, q.clock.Now())
	if it.Number == 0 || it.Number > mark {
		return r, false, nil
	}
	if r, known, err = q.earlier(ctx, it.Key); err != nil {
		return r, false, err
	}
	q.watch.Duplicate(it.Source)
	if !known {
		err = fmt.Errorf("%w: producer %s is past %d already, and sent %d", ErrTooOld, it.Producer, mark, it.Number)
	}
	return r, known, err
}

// admit makes room for an item of so many bytes.
func (q *Queue) admit(scope string, it *schema.Item, n int) error {
	if err := q.index.reserve(scope, it, &q.o); err != nil {
		return err
	}
	// A tenth of the bucket is for the ends of items.
	most := kv.PercentOf(kv.PercentOf(q.items.MaxBytes(), 90), q.o.share(it))
	if err := q.room.take(q.items.mirror.Info(), most, int64(n)); err != nil {
		q.index.release(scope, it)
		return fmt.Errorf("%w%s", err, left(it, &q.o))
	}
	return nil
}

// write stores the item, until it is there or ctx ends.
func (q *Queue) write(ctx context.Context, it *schema.Item, value []byte) (schema.Receipt, error) {
	var receipt schema.Receipt
	lost := false // an answer, so that the item may be there
	err := kv.Retry(ctx, func(ctx context.Context) (bool, error) {
		revision, err := q.items.Write(ctx, kv.Write{Key: it.Key, Value: value, Within: storeFor})
		switch {
		case err == nil:
			it.Sequence, it.Accepted = revision, q.clock.Now()
			receipt = schema.Receipt{Key: it.Key, Sequence: revision, State: schema.Queued}
			return true, nil
		case !kv.Refused(err):
			lost = true
			return false, err
		}
		var known bool
		receipt, known, err = q.earlier(ctx, it.Key)
		if known && lost && receipt.State == schema.Queued {
			receipt.Duplicate = !q.mine(ctx, receipt.Sequence, value)
		}
		return known, err
	})
	switch {
	case kv.Full(err):
		return schema.Receipt{}, full("the bucket %s holds no more", ItemBucket)
	case err != nil:
		return schema.Receipt{}, unavailable(err)
	case receipt.Duplicate:
		q.watch.Duplicate(it.Source)
		return receipt, nil
	}
	if err := q.steps([]Step{StepEnqueueStored}); err != nil {
		return schema.Receipt{}, err
	}
	if it.Sequence > 0 {
		q.index.put(it)
	}
	return receipt, nil
}

// mine reports whether the item with that sequence is what was just sent.
func (q *Queue) mine(ctx context.Context, sequence uint64, value []byte) bool {
	e, err := q.items.Revision(ctx, sequence)
	return err == nil && bytes.Equal(e.Value, value)
}

// earlier asks the leader what became of the item with the key; known: it was
// accepted before.
func (q *Queue) earlier(ctx context.Context, key string) (r schema.Receipt, known bool, err error) {
	e, err := q.items.Last(ctx, key)
	switch {
	case err != nil:
		return r, false, unavailable(err)
	case e.Revision == 0:
		return r, false, nil
	case e.Kind == kv.Put:
		it, err := decode(e)
		if err != nil {
			return r, false, unavailable(err)
		}
		state := schema.Queued
		if it.Scope.Agent != "" {
			state = q.state(&entry{item: *it})
		}
		return schema.Receipt{Key: key, Sequence: e.Revision, Duplicate: true, State: state}, true, nil
	}
	r = schema.Receipt{Key: key, Duplicate: true, State: schema.ItemState(e.Header.Get(headerState))}
	r.Sequence, _ = strconv.ParseUint(e.Header.Get(headerSequence), 10, 64)
	if r.State == "" { // somebody purged it by hand
		r.State = schema.Withdrawn
	}
	return r, true, nil
}

// state is what the mirror knows of an item that is in the bucket.
func (q *Queue) state(e *entry) schema.ItemState {
	state, _ := q.stateFor(e)
	return state
}

// stateFor is that and, where the item is leased, the event that it went out with.
func (q *Queue) stateFor(e *entry) (schema.ItemState, string) {
	a := q.agents.find(e.item.Scope.Agent)
	if e.kind != forAgent || a == nil {
		return schema.Queued, ""
	}
	return a.cursor.Load().state(e)
}

// state is what became of the agent's item, and its event if it is leased.
func (k *known) state(e *entry) (schema.ItemState, string) {
	if k.done(e) {
		return k.ended(e.seq()), ""
	}
	if l := k.leased(e.seq()); l != nil && time.Duration(l.Left) > time.Since(k.seen) {
		return schema.Leased, l.Event
	}
	return schema.Queued, ""
}

// A room counts what was written since the leader was last asked how much the
// bucket holds.
type room struct {
	mu      sync.Mutex // guards what follows
	asked   time.Time
	written int64
}

// overhead is about what the bucket needs for an item beside its key and value.
const overhead = 100

// take takes n bytes of the bucket, of which most may be taken; 0: any number.
func (r *room) take(info kv.Info, most, n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !info.Now.Equal(r.asked) {
		r.asked, r.written = info.Now, 0
	}
	if most > 0 && info.Bytes+r.written+n+overhead > most {
		return full("they take %d MiB, and %d MiB of the bucket %s are for them", (info.Bytes+r.written)>>20, most>>20, ItemBucket)
	}
	r.written += n + overhead
	return nil
}
