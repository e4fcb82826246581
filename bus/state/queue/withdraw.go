package queue

import (
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// Withdraw takes an item back. One that has ended, or is an agent's own and leased, stays as
// it is.
func (q *Queue) Withdraw(ctx context.Context, key string) (schema.WithdrawAnswer, error) {
	var named schema.Item
	if err := readKey(key, &named); err != nil {
		return schema.WithdrawAnswer{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	for i := range kv.Attempts {
		e, state, err := q.current(ctx, key)
		if err != nil || e == nil {
			return schema.WithdrawAnswer{Key: key, State: state}, err
		}
		answer, here, err := q.withdraw(ctx, e)
		if err != nil || here {
			return answer, err
		}
		if err := kv.Again(ctx, i); err != nil { // it ended elsewhere
			return schema.WithdrawAnswer{}, unavailable(err)
		}
	}
	return schema.WithdrawAnswer{}, unavailable(kv.ErrContended)
}

// current asks the leader for the item with the key; nil: it ended as state says.
func (q *Queue) current(ctx context.Context, key string) (*entry, schema.ItemState, error) {
	m, err := q.items.Last(ctx, key)
	switch {
	case err != nil:
		return nil, "", unavailable(err)
	case m.Revision == 0:
		return nil, "", fmt.Errorf("%w as %.300s; 'broker pending' lists the messages that wait", ErrNotFound, key)
	case m.Kind != kv.Put:
		state := schema.ItemState(m.Header.Get(headerState))
		if state == "" {
			state = schema.Withdrawn
		}
		return nil, state, nil
	}
	it, err := decode(m)
	if err != nil {
		return nil, "", unavailable(err)
	}
	e := &entry{item: *it, held: true}
	switch {
	case it.Scope.Session != "":
		e.kind = forSession
	case it.Scope.Agent == "":
		e.kind = forAll
	}
	return e, "", nil
}

// withdraw ends the item; here: it was ended, or is to stay.
func (q *Queue) withdraw(ctx context.Context, e *entry) (answer schema.WithdrawAnswer, here bool, err error) {
	answer = schema.WithdrawAnswer{Key: e.item.Key, State: schema.Withdrawn}
	if e.kind != forAgent {
		answer.Delivered = q.deliveries(e)
		here, err = q.endItem(ctx, e, schema.Withdrawn)
		return answer, here, err
	}
	a, err := q.agents.get(e.item.Scope.Agent)
	if err != nil {
		return answer, false, err
	}
	if answer.State, err = q.close(ctx, a, e, schema.Withdrawn); err != nil {
		return answer, false, err
	}
	if answer.State == schema.Withdrawn {
		here, err := q.endItem(ctx, e, schema.Withdrawn)
		if err != nil {
			q.suspects.add(a) // it is withdrawn all the same
		} else if !here {
			return answer, false, nil // it had ended, perhaps otherwise
		}
	}
	return answer, true, nil
}

// deliveries counts the agents that got an item for many.
func (q *Queue) deliveries(e *entry) (n int) {
	q.agents.each(func(a *agent) {
		k := a.cursor.Load()
		if k.Since > 0 && k.meant(e, a.name) && k.done(e) {
			n++
		}
	})
	return n
}
