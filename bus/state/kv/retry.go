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
	// Attempts bounds how often a compare-and-set is tried: enough for many writers, and few
	// enough to notice a key that never changes.
	Attempts = 20
	// TryFor bounds one request to a JetStream that may be without a leader.
	TryFor = 5 * time.Second
)

// The server's error codes.
const (
	// codeStoreFull is the error of a leader that cannot write.
	codeStoreFull jetstream.ErrorCode = 10077
	// codeNoRoom means too little disk space for a new bucket, codeNoMemory too little memory.
	codeNoRoom   jetstream.ErrorCode = 10047
	codeNoMemory jetstream.ErrorCode = 10028
	// codeNoPeers means that too few servers are available for the replicas, or have space for
	// them, which only the description tells.
	codeNoPeers jetstream.ErrorCode = 10005
	noStorage                       = "insufficient storage"
)

// ErrContended means that a compare-and-set failed each time: other writers were faster, or a leader
// that is cut off rejects all further writes of the key.
var ErrContended = errors.New("other writers were faster each time, or the leader is cut off; try again")

// Pause waits a random time up to most, so that many callers spread out.
func Pause(ctx context.Context, most time.Duration) error {
	return Rest(ctx, rand.N(most)+time.Millisecond)
}

// backoff returns the longest wait before the next attempt.
func backoff(attempt int) time.Duration {
	return min(5*time.Millisecond<<attempt, 250*time.Millisecond)
}

// Rest waits for d, or returns why ctx ended.
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

// Again waits before the next attempt, with a longer backoff after each; attempts count from 0.
func Again(ctx context.Context, attempt int) error { return Pause(ctx, backoff(attempt)) }

// Retry calls try, each time for at most [TryFor], until it is done or returns an error that does not
// pass by itself. A cluster may be without a leader for ten seconds, and a server that restarts its
// JetStream leaves requests without an answer.
func Retry(ctx context.Context, try func(context.Context) (bool, error)) error {
	var last error
	for i := range Attempts {
		tctx, cancel := context.WithTimeout(ctx, TryFor)
		done, err := try(tctx)
		cancel()
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

// Refused reports whether err is a lost compare-and-set; replicated buckets have other errors for it.
func Refused(err error) bool {
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return true
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// Passing reports whether err passes by itself: JetStream is starting, electing a leader, or waiting for
// servers.
func Passing(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == 503 && api.ErrorCode != codeStoreFull || api.ErrorCode == codeNoPeers && !NoRoom(err)
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, jetstream.ErrNoStreamResponse)
}

// Opening is [Passing] for opening something that is created if it is missing. A leader may report that
// it does not exist although others have created it.
func Opening(err error) bool {
	return Passing(err) || errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound)
}

// NoRoom reports whether the server has too little disk space or memory for a new bucket.
func NoRoom(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == codeNoRoom || api.ErrorCode == codeNoMemory ||
		api.ErrorCode == codeNoPeers && strings.Contains(api.Description, noStorage))
}

// Patiently calls try, each time for at most TryFor, until it succeeds, wait rejects its error, or ctx
// ends.
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

// Full reports whether a bucket, or its disk, is full.
func Full(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == codeStoreFull
}
