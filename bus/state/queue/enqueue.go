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

// storeFor bounds one attempt to store an item. A leader that dies never answers, and the next one, some seconds later,
// does not have the request. It is then sent again, and stored once.
const storeFor = kv.Patient

// Enqueue accepts an item. Without an error the item is on disk. A repeat returns the receipt of the first item.
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
		// A repeat needs no space.
		if receipt, known, rerr := q.earlier(ctx, it.Key); known && rerr == nil {
			q.watch.Duplicate(it.Source)
			return receipt, nil
		}
		return schema.Receipt{}, err
	}
	defer q.index.release(scope, it)
	return q.write(ctx, it, value)
}

// known reports whether the mirror has the item, or its number was used.
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

// admit reserves space for an item of n bytes.
func (q *Queue) admit(scope string, it *schema.Item, n int) error {
	if err := q.index.reserve(scope, it, &q.o); err != nil {
		return err
	}
	// A tenth of the bucket is reserved for the ends of items.
	most := kv.PercentOf(kv.PercentOf(q.items.MaxBytes(), 90), q.o.share(it))
	if err := q.usage.take(q.items.mirror.Info(), most, int64(n)); err != nil {
		q.index.release(scope, it)
		return fmt.Errorf("%w%s", err, left(it, &q.o))
	}
	return nil
}

// write stores the item, and repeats that until it succeeds or ctx ends.
func (q *Queue) write(ctx context.Context, it *schema.Item, value []byte) (schema.Receipt, error) {
	var receipt schema.Receipt
	lost := false // an answer was lost, so the item may be stored
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

// mine reports whether the stored item has the value that was sent.
func (q *Queue) mine(ctx context.Context, sequence uint64, value []byte) bool {
	e, err := q.items.Revision(ctx, sequence)
	return err == nil && bytes.Equal(e.Value, value)
}

// earlier asks the leader for the state of the item with the key; known: it was accepted before.
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
	if r.State == "" { // it was purged by hand
		r.State = schema.Withdrawn
	}
	return r, true, nil
}

// state returns the state of an item in the bucket, as the mirror knows it.
func (q *Queue) state(e *entry) schema.ItemState {
	state, _ := q.stateFor(e)
	return state
}

// stateFor returns the state and, for a leased item, its event.
func (q *Queue) stateFor(e *entry) (schema.ItemState, string) {
	a := q.agents.find(e.item.Scope.Agent)
	if e.kind != forAgent || a == nil {
		return schema.Queued, ""
	}
	return a.cursor.Load().state(e)
}

// state returns the state of the agent's item and, if it is leased, its event.
func (k *known) state(e *entry) (schema.ItemState, string) {
	if k.done(e) {
		return k.ended(e.seq()), ""
	}
	if l := k.leased(e.seq()); l != nil && time.Duration(l.Left) > time.Since(k.seen) {
		return schema.Leased, l.Event
	}
	return schema.Queued, ""
}

// A usage counts the bytes that were written since the leader was last asked for the size of the bucket.
type usage struct {
	mu      sync.Mutex // guards what follows
	asked   time.Time
	written int64
}

// overhead is about how many bytes the bucket needs for an item besides key and value.
const overhead = 100

// take reserves n bytes of the bucket, which may hold most bytes; 0: no limit.
func (u *usage) take(info kv.Info, most, n int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !info.Now.Equal(u.asked) {
		u.asked, u.written = info.Now, 0
	}
	if most > 0 && info.Bytes+u.written+n+overhead > most {
		return full("they take %d MiB, and %d MiB of the bucket %s are for them", (info.Bytes+u.written)>>20, most>>20, ItemBucket)
	}
	u.written += n + overhead
	return nil
}
