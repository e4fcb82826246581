package loop

import (
	"context"
	"fmt"
	"strings"
)

// guarded runs a user's function until it returns or ctx ends. A function that ignores
// ctx keeps running and its result is dropped. A panic is an error. what names the
// function in errors.
func guarded[T any](ctx context.Context, what string, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: fmt.Errorf("%s ended its goroutine", what)}
		defer func() {
			if p := recover(); p != nil {
				a = answer{err: fmt.Errorf("%s panicked: %v", what, p)}
			}
			answers <- a
		}()
		v, err := f(ctx)
		a = answer{v, err}
	}()
	select {
	case a := <-answers:
		return a.v, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-answers:
		return a.v, a.err
	default:
		return *new(T), context.Cause(ctx)
	}
}

// first returns the first text that is not blank.
func first(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return t
		}
	}
	return ""
}
