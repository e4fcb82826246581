package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// attempts bounds how often a compare-and-set is tried: enough for a crowd,
	// few enough to notice a key that will never change.
	attempts = 20
	// tryFor bounds one request to a JetStream that may be without a leader.
	tryFor = 5 * time.Second
)

// pause waits a random while of up to most, so that a crowd spreads out.
func pause(ctx context.Context, most time.Duration) error {
	t := time.NewTimer(rand.N(most) + time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// again waits before the next attempt, longer after each.
func again(ctx context.Context, attempt int) error {
	return pause(ctx, min(5*time.Millisecond<<attempt, 250*time.Millisecond))
}

// retry calls try until it settles the matter, or an error ends it.
func (c *Configs) retry(ctx context.Context, try func(context.Context) (bool, error)) error {
	for i := range attempts {
		if done, err := try(ctx); done || err != nil {
			return err
		}
		if err := again(ctx, i); err != nil {
			return err
		}
	}
	return fmt.Errorf("others changed it %d times meanwhile; try again", attempts)
}

// refused reports whether err is a lost compare-and-set.
func refused(err error) bool { return errors.Is(err, jetstream.ErrKeyRevisionMismatch) }

// passing reports whether err is one of a JetStream that is still starting,
// or electing a leader.
func passing(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == 503
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, jetstream.ErrNoStreamResponse)
}

// patiently calls try, each time for a bounded while, until it works, its
// error is not one that passes, or ctx ends.
func patiently[T any](ctx context.Context, what string, wait func(error) bool, try func(context.Context) (T, error)) (T, error) {
	for {
		tctx, cancel := context.WithTimeout(ctx, tryFor)
		v, err := try(tctx)
		cancel()
		if err == nil {
			return v, nil
		}
		if ctx.Err() == nil && !wait(err) {
			return v, fmt.Errorf("%s: %w", what, err)
		}
		if perr := pause(ctx, 250*time.Millisecond); perr != nil {
			return v, fmt.Errorf("%s: %w (the last attempt: %w)", what, perr, err)
		}
	}
}
