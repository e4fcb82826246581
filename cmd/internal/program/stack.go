package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Stack remembers how to stop what was started, and stops it in reverse.
type Stack struct{ steps []step }

type step struct {
	name string
	stop func(context.Context) error
}

// Push remembers how to stop the part called name.
func (s *Stack) Push(name string, stop func(context.Context) error) {
	s.steps = append(s.steps, step{name, stop})
}

// Stop stops everything in reverse order of its start. Every part gets its
// turn, and its share of the time, whatever the others did.
func (s *Stack) Stop(ctx context.Context) error {
	var errs []error
	for _, st := range slices.Backward(s.steps) {
		if err := stopOne(ctx, st); err != nil {
			errs = append(errs, fmt.Errorf("cannot stop the %s: %w", st.name, err))
		}
	}
	s.steps = nil
	return errors.Join(errs...)
}

// atLeast is the time that every part gets to stop, even when the parts before
// it took all there was.
const atLeast = 2 * time.Second

func stopOne(ctx context.Context, st step) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), atLeast)
		defer cancel()
	}
	return st.stop(ctx)
}
