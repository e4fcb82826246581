package queue

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
)

// suspectFor is how long a finished item may stay in the bucket before other brokers than the first
// one end it.
const suspectFor = 2 * time.Second

// suspects are agents that may have finished items in the bucket.
type suspects struct {
	mu  sync.Mutex // guards all
	all map[*agent]time.Time
}

// add adds an agent.
func (s *suspects) add(a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.all[a]; !ok {
		s.all[a] = time.Now()
	}
}

// take returns and removes the agents that were added more than suspectFor ago.
func (s *suspects) take() (some []*agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a, since := range s.all {
		if time.Since(since) >= suspectFor {
			some = append(some, a)
			delete(s.all, a)
		}
	}
	return some
}

// endSoon removes the agent's finished items in the background, or the sweep does.
func (q *Queue) endSoon(a *agent) {
	if q.index.any(a.scope) && !later(q.jobs, func() { q.endDone(a) }) {
		q.suspects.add(a)
	}
}

// endDone removes the agent's finished items.
func (q *Queue) endDone(a *agent) {
	waiting := q.index.waiting(a.scope)
	if k := a.cursor.Load(); len(waiting) > 0 {
		q.foretell(q.life, slices.DeleteFunc(slices.Clone(waiting), func(e *entry) bool { return !k.done(e) }))
	}
	for _, e := range waiting {
		k := a.cursor.Load()
		if !k.done(e) {
			continue
		}
		if err := q.endOne(a, e, k.ended(e.seq())); err != nil {
			if q.life.Err() == nil {
				q.log.Info("cannot remove an ended item; the broker tries again", "key", e.item.Key, "error", err)
			}
			q.suspects.add(a)
			return
		}
	}
}

// endOne ends an agent's item, after Finish if it was delivered.
func (q *Queue) endOne(a *agent, e *entry, state schema.ItemState) error {
	ctx, cancel := context.WithTimeout(q.life, kv.TryFor)
	defer cancel()
	if state == schema.Delivered && q.o.Finish != nil {
		it := e.item
		if !e.held {
			whole, err := q.text(ctx, e)
			if errors.Is(err, errGone) {
				return nil
			}
			if err != nil {
				return err
			}
			it = *whole
		}
		if err := q.o.Finish(ctx, a.name, &it); err != nil {
			return err
		}
	}
	_, err := q.endItem(ctx, e, state)
	return err
}

// endItem writes the end of an item, and reports whether this process ended it.
func (q *Queue) endItem(ctx context.Context, e *entry, state schema.ItemState) (bool, error) {
	if err := q.steps([]Step{StepEndBegun}); err != nil {
		return false, err
	}
	key := e.item.Key
	revision, err := q.items.Write(ctx, kv.Write{
		Key: key, Last: e.seq(), Purge: true, TTL: q.rememberKeyFor(key),
		Header: nats.Header{headerState: {string(state)}, headerSequence: {strconv.FormatUint(e.seq(), 10)}, headerBy: {q.id}},
	})
	here := err == nil
	if kv.Refused(err) {
		if revision, here, err = q.endedSo(ctx, key, state); err == nil && revision == e.seq() {
			err = kv.ErrContended // the refusal was spurious
		}
	}
	if err != nil {
		return false, unavailable(err)
	}
	if err := q.steps([]Step{StepEndStored}); err != nil {
		return here, err
	}
	if revision > 0 {
		q.index.end(key, revision, true)
	} else if err := q.vanished(ctx, e); err != nil {
		return here, err
	}
	if here && state == schema.Expired {
		q.watch.Expired(&e.item)
	}
	return here, nil
}

// endedSo returns the newest revision of the key, and whether it is the end that this process wrote, whose answer was
// lost.
func (q *Queue) endedSo(ctx context.Context, key string, state schema.ItemState) (uint64, bool, error) {
	last, err := q.items.Last(ctx, key)
	here := last.Kind != kv.Put && last.Header.Get(headerBy) == q.id && last.Header.Get(headerState) == string(state)
	return last.Revision, here, err
}
