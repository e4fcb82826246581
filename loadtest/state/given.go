package state

import (
	"context"
	"errors"
	"fmt"
)

// takers are how many agents are given something, each by one call.
const takers = 50

// Given is what calls wrote that were given items, before these are acknowledged.
type Given struct {
	// Items were given to each of so many Calls.
	Items int `json:"items"`
	Calls int `json:"calls"`
	// Writes is how many messages the streams of items and of cursors took for them.
	Writes uint64 `json:"writes"`
}

// OK reports whether each call wrote once.
func (g *Given) OK() bool { return g.Writes == uint64(g.Calls) }

// given counts what is written where calls are given one item, and where they are given
// several.
func (o *Options) given(ctx context.Context, r *Report) (err error) {
	s, err := o.alone(ctx, "given", relaxed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for _, items := range []int{1, 8} {
		g, err := s.give(ctx, items)
		if err != nil {
			return fmt.Errorf("%d items for each call: %w", items, err)
		}
		r.Given = append(r.Given, g)
		o.say("given: %d calls delivered %d items each, in %d writes", g.Calls, g.Items, g.Writes)
	}
	return nil
}

// give has calls be given so many items each. Their agents have asked before: the first
// call of all writes down who it is.
func (s *site) give(ctx context.Context, items int) (*Given, error) {
	q := Telling{Do: take, Callers: 1, Calls: takers, Prefix: fmt.Sprintf("given-%d-", items), Agents: takers}
	if _, err := s.told(ctx, q); err != nil {
		return nil, err
	}
	fill := q
	fill.Do, fill.Calls = Enqueue, items*takers
	if _, err := s.told(ctx, fill); err != nil {
		return nil, err
	}
	js, nc, err := s.streams(ctx)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	before, _, err := s.quiet(ctx, js)
	if err != nil {
		return nil, err
	}
	q.Items = items
	told, err := s.told(ctx, q)
	if err != nil {
		return nil, err
	}
	after, _, err := s.quiet(ctx, js)
	if err == nil && told.Late > 0 {
		err = fmt.Errorf("%d of %d calls continued without the waiting items", told.Late, q.Calls)
	}
	return &Given{Items: items, Calls: q.Calls, Writes: after - before}, err
}
