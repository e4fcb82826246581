package rounds

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// attempts bounds how often a change is tried. Few processes compete for one agent's round, and each tries one change at a time.
const attempts = 50

// update calls change with a copy of the round, nil without a round, and stores the result unless it is nil. If the round was changed at
// the same time, it calls change again. A repeated change must be harmless, because the answer to a write may be lost. update returns
// the final round, and whether it was written.
func (r *Rounds) update(ctx context.Context, agent string, change func(now *record) (*record, error)) (*record, bool, error) {
	key, err := bus.Token(agent)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	leave, err := r.lanes.enter(ctx, key)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer leave()
	for i := range attempts {
		var rec *record
		var changed bool
		if rec, changed, err = r.try(ctx, agent, key, change); err == nil || errors.Is(err, ErrNone) {
			return rec, changed, err
		}
		if werr := r.wait(ctx, i, err); werr != nil {
			return nil, false, fmt.Errorf("%w: %w", ErrUnavailable, werr)
		}
	}
	return nil, false, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// wait waits before another attempt after err; an error: another attempt is useless.
func (r *Rounds) wait(ctx context.Context, attempt int, err error) error {
	switch {
	case kv.Refused(err):
		r.o.Conflict()
		return kv.Again(ctx, attempt)
	case kv.Passing(err) && ctx.Err() == nil:
		return kv.Pause(ctx, time.Second)
	}
	return err
}

// try makes one attempt.
func (r *Rounds) try(ctx context.Context, agent, key string, change func(now *record) (*record, error)) (*record, bool, error) {
	e, err := r.bucket.Last(ctx, key)
	if err != nil {
		return nil, false, err
	}
	now := read(e)
	var scratch *record
	if now != nil {
		scratch = now.copy()
	}
	wanted, err := change(scratch)
	if err != nil || wanted == nil {
		return now, false, err
	}
	data, err := schema.Marshal(wanted)
	if err != nil {
		return nil, false, err
	}
	revision, err := r.bucket.Write(ctx, kv.Write{Key: key, Value: data, Last: e.Revision})
	if err != nil {
		return nil, false, err
	}
	// The exact time comes with the mirror.
	rec := wanted.at(revision, r.clock.Now())
	r.learn(agent, rec)
	return rec, true, nil
}

// lanes serialise the changes of each agent's round; several agents may share a lane.
type lanes struct {
	seed  maphash.Seed
	lanes [64]chan struct{}
}

func newLanes() lanes {
	l := lanes{seed: maphash.MakeSeed()}
	for i := range l.lanes {
		l.lanes[i] = make(chan struct{}, 1)
	}
	return l
}

func (l *lanes) enter(ctx context.Context, key string) (leave func(), err error) {
	lane := l.lanes[maphash.String(l.seed, key)%uint64(len(l.lanes))]
	select {
	case lane <- struct{}{}:
		return func() { <-lane }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
