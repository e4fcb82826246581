package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Stack holds the stop functions of the parts of a program.
type Stack struct{ steps []step }

type step struct {
	name string
	stop func(context.Context) error
}

// Push adds the stop function of the part called name.
func (s *Stack) Push(name string, stop func(context.Context) error) {
	s.steps = append(s.steps, step{name, stop})
}

// Stop stops all parts in reverse order of their start. It continues after errors, and gives each part
// at least atLeast, also after the end of ctx.
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

// atLeast is how long each part may take to stop, even after the end of the context.
const atLeast = 2 * time.Second

func stopOne(ctx context.Context, st step) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), atLeast)
		defer cancel()
	}
	return st.stop(ctx)
}
