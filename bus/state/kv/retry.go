package kv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// Attempts bounds how often a compare-and-set is tried: enough for a crowd,
	// few enough to notice a key that will never change.
	Attempts = 20
	// TryFor bounds one request to a JetStream that may be without a leader.
	TryFor = 5 * time.Second
)

// The server's codes that are looked at.
const (
	// codeStoreFull is what a leader answers that could not write.
	codeStoreFull jetstream.ErrorCode = 10077
	// codeNoRoom is that of too little storage left for a new bucket, codeNoMemory
	// that of too little memory for one that is kept there.
	codeNoRoom   jetstream.ErrorCode = 10047
	codeNoMemory jetstream.ErrorCode = 10028
	// codeNoPeers is that of too few servers in a cluster for all the replicas, or of
	// too few that have room for one, which the description says.
	codeNoPeers jetstream.ErrorCode = 10005
	noStorage                       = "insufficient storage"
)

// ErrContended says that a compare-and-set was lost again and again: to others, or as a
// leader that is cut off refuses all further ones of a key.
var ErrContended = errors.New("other writers were faster each time, or the leader is cut off; try again")

// Pause waits a random while of up to most, so that a crowd spreads out.
func Pause(ctx context.Context, most time.Duration) error {
	return Rest(ctx, rand.N(most)+time.Millisecond)
}

// backoff is how long to wait at most before the next attempt.
func backoff(attempt int) time.Duration {
	return min(5*time.Millisecond<<attempt, 250*time.Millisecond)
}

// Rest waits that long, or returns why not.
func Rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Again waits before the next attempt, longer after each; attempts count from 0.
func Again(ctx context.Context, attempt int) error { return Pause(ctx, backoff(attempt)) }

// Retry calls try until it settles the matter, or meets an error that does not
// pass. A cluster may be without a leader for ten seconds.
func Retry(ctx context.Context, try func(context.Context) (bool, error)) error {
	var last error
	for i := range Attempts {
		done, err := try(ctx)
		if err == nil && done || err != nil && !Passing(err) {
			return err
		}
		wait := backoff(i)
		if last = ErrContended; err != nil {
			last, wait = err, time.Second
		}
		if err := Pause(ctx, wait); err != nil {
			return fmt.Errorf("%w (the last attempt: %w)", err, last)
		}
	}
	return last
}

// Refused reports whether err is a lost compare-and-set, which replicated
// buckets say in another way.
func Refused(err error) bool {
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return true
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// Passing reports whether err is one of a JetStream that is still starting,
// electing a leader, or waiting for servers.
func Passing(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == 503 && api.ErrorCode != codeStoreFull || api.ErrorCode == codeNoPeers && !NoRoom(err)
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, jetstream.ErrNoStreamResponse)
}

// Opening is [Passing] while something is opened that is made where it is missing: a
// leader of a cluster may say that it is not there when others have made it already.
func Opening(err error) bool {
	return Passing(err) || errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound)
}

// NoRoom reports whether err says that the server has too little storage, or
// memory, left for a new bucket.
func NoRoom(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == codeNoRoom || api.ErrorCode == codeNoMemory ||
		api.ErrorCode == codeNoPeers && strings.Contains(api.Description, noStorage))
}

// Patiently calls try, each time for a bounded while, until it works, its
// error is not one that is worth to wait for, or ctx ends.
func Patiently[T any](ctx context.Context, what string, wait func(error) bool, try func(context.Context) (T, error)) (T, error) {
	for {
		tctx, cancel := context.WithTimeout(ctx, TryFor)
		v, err := try(tctx)
		cancel()
		if err == nil {
			return v, nil
		}
		if ctx.Err() == nil && !wait(err) {
			return v, fmt.Errorf("%s: %w", what, err)
		}
		if perr := Pause(ctx, 250*time.Millisecond); perr != nil {
			return v, fmt.Errorf("%s: %w (the last attempt: %w)", what, perr, err)
		}
	}
}

// Full reports whether err says that a bucket, or the disk below it, takes no more.
func Full(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == codeStoreFull
}
