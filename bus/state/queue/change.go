package queue

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// A plan is a change of a cursor.
type plan struct {
	cursor *cursor
	// begun and stored are the test steps before and after the write.
	begun, stored []Step
	// sent: it may have been stored.
	sent bool
}

// change calls decide for a plan and stores it by a compare-and-set. If that fails it reads the cursor from the
// leader and calls decide again. A nil plan ends it. decide gets a view with all items that the writer of the
// cursor knew. fresh: the cursor is read from the leader first.
func (q *Queue) change(ctx context.Context, a *agent, fresh bool, session string, decide func(*known, *view) (*plan, error)) error {
	if err := a.lock(ctx); err != nil {
		return err
	}
	defer a.unlock()
	for i := range kv.Attempts {
		k, v, err := q.look(ctx, a, fresh, session)
		if err != nil {
			return err
		}
		p, err := decide(k, v)
		if err != nil || p == nil {
			return err
		}
		stored, err := q.store(ctx, a, k, p)
		if err != nil || stored {
			return err
		}
		q.watch.Conflict()
		fresh = true
		if i > 0 { // the first failure may only mean that this process had an old revision
			if err := kv.Again(ctx, i); err != nil {
				return unavailable(err)
			}
		}
	}
	return unavailable(kv.ErrContended)
}

// look returns the agent's cursor, and the items at least up to where the cursor's writer knew them.
func (q *Queue) look(ctx context.Context, a *agent, fresh bool, session string) (*known, *view, error) {
	k := a.cursor.Load()
	if fresh {
		e, err := q.cursors.Last(ctx, a.token)
		if err != nil {
			return nil, nil, unavailable(err)
		}
		if e.Revision != k.revision {
			k = knownOf(e, q.clock)
			a.take(k)
		}
	}
	if k.bad != nil {
		return nil, nil, unavailable(k.bad)
	}
	if err := cmp.Or(q.items.mirror.Wrong(), q.items.mirror.Reach(ctx, k.At)); err != nil {
		return nil, nil, unavailable(err)
	}
	// A session whose name is too long for a token has no items.
	return k, q.index.view(scopes{own: a.scope, session: a.scopeOf(session)}, &k.cursor), nil
}

// store writes the plan's cursor, and reports whether the compare-and-set succeeded.
func (q *Queue) store(ctx context.Context, a *agent, k *known, p *plan) (bool, error) {
	value, err := schema.Marshal(p.cursor)
	if err != nil {
		return false, err
	}
	if err := q.steps(p.begun); err != nil {
		return false, err
	}
	p.sent = true
	revision, err := q.cursors.Write(ctx, kv.Write{Key: a.token, Value: value, Last: k.revision})
	switch {
	case kv.Refused(err):
		p.sent = false
		return false, nil
	case err != nil:
		return false, unavailable(err)
	}
	a.take(&known{cursor: *p.cursor, revision: revision, seen: time.Now(), created: q.clock.Now()})
	return true, q.steps(p.stored)
}

// begin returns a copy of the cursor with the present remaining times of leases.
func (k *known) begin() cursor { return k.clone(time.Since(k.seen)) }

// steps passes the named steps, at which a test can simulate the death of the process.
func (q *Queue) steps(all []Step) error {
	if q.o.Step == nil {
		return nil
	}
	for _, s := range all {
		if err := q.o.Step(s); err != nil {
			return &died{s, err}
		}
	}
	return nil
}

// died is the error of such a death.
type died struct {
	at  Step
	err error
}

func (d *died) Error() string { return fmt.Sprintf("at the step %s: %v", d.at, d.err) }
func (d *died) Unwrap() error { return d.err }

func unavailable(err error) error { return fmt.Errorf("%w: %w", ErrUnavailable, err) }

func allowance(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrAllowance, fmt.Sprintf(format, args...))
}

func full(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFull, fmt.Sprintf(format, args...))
}
