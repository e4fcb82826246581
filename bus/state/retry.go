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
	// storeFull is what a leader answers that could not write.
	storeFull jetstream.ErrorCode = 10077
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

// backoff is how long to wait at most before the next attempt.
func backoff(attempt int) time.Duration {
	return min(5*time.Millisecond<<attempt, 250*time.Millisecond)
}

// again waits before the next attempt, longer after each.
func again(ctx context.Context, attempt int) error { return pause(ctx, backoff(attempt)) }

// errContended says that a compare-and-set was lost again and again.
var errContended = errors.New("others changed it all the time; try again")

// retry calls try until it settles the matter, or meets an error that does not
// pass. A cluster may be without a leader for ten seconds.
func retry(ctx context.Context, try func(context.Context) (bool, error)) error {
	var last error
	for i := range attempts {
		done, err := try(ctx)
		if err == nil && done || err != nil && !passing(err) {
			return err
		}
		wait := backoff(i)
		if last = errContended; err != nil {
			last, wait = err, time.Second
		}
		if err := pause(ctx, wait); err != nil {
			return fmt.Errorf("%w (the last attempt: %w)", err, last)
		}
	}
	return last
}

// refused reports whether err is a lost compare-and-set.
func refused(err error) bool { return errors.Is(err, jetstream.ErrKeyRevisionMismatch) }

// passing reports whether err is one of a JetStream that is still starting,
// or electing a leader.
func passing(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == 503 && api.ErrorCode != storeFull
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
