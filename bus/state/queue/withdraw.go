package queue

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// Withdraw removes an item. An item that has ended, or an agent's own leased one, stays as it is.
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
		if err := kv.Again(ctx, i); err != nil { // another process ended it
			return schema.WithdrawAnswer{}, unavailable(err)
		}
	}
	return schema.WithdrawAnswer{}, unavailable(kv.ErrContended)
}

// current asks the leader for the item with the key; nil: it has ended with that state.
func (q *Queue) current(ctx context.Context, key string) (*entry, schema.ItemState, error) {
	m, err := q.items.Last(ctx, key)
	switch {
	case err != nil:
		return nil, "", unavailable(err)
	case m.Revision == 0:
		return nil, "", fmt.Errorf("%w as %.300s; 'broker pending' lists the messages that wait", ErrNotFound, key)
	case m.Kind != kv.Put:
		state := schema.ItemState(m.Header.Get(headerState))
		state = cmp.Or(state, schema.Withdrawn)
		return nil, state, nil
	}
	it, err := decode(m)
	if err != nil {
		return nil, "", unavailable(err)
	}
	return &entry{item: *it, held: true, kind: kindOf(it)}, "", nil
}

// withdraw ends the item; here: this process ended it, or it stays.
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
			q.suspects.add(a) // the cursor has the withdrawal, and the sweep removes the item
		} else if !here {
			return answer, false, nil // it had ended before
		}
	}
	return answer, true, nil
}

// deliveries counts the agents that received an item for several agents.
func (q *Queue) deliveries(e *entry) (n int) {
	q.agents.each(func(a *agent) {
		k := a.cursor.Load()
		if k.Since > 0 && k.meant(e, a.name) && k.done(e) {
			n++
		}
	})
	return n
}
