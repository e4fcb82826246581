package kv

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// Patient is how long a write must have waited in vain for that to say
	// something of the stream, and not of the haste of who wrote.
	Patient = 2 * time.Second
	// failedFor is how long a write that failed counts if no other follows.
	failedFor = 30 * time.Second
)

// Stored knows whether what is written to a stream is stored: one whose disk was
// full once refuses all writes for good. The zero Stored has heard of none.
type Stored struct{ failed atomic.Pointer[failure] }

type failure struct {
	err error
	at  time.Time
}

// Note hears what came of a write that began then.
func (s *Stored) Note(err error, began time.Time) {
	hasty := errors.Is(err, context.DeadlineExceeded) && time.Since(began) < Patient
	switch {
	case err == nil:
		s.failed.Store(nil)
	case !Refused(err) && !errors.Is(err, context.Canceled) && !hasty:
		s.failed.Store(&failure{err, time.Now()})
	}
}

// Failed is why the last write was not stored; nil: it was, or that is long ago.
func (s *Stored) Failed() error {
	if f := s.failed.Load(); f != nil && time.Since(f.at) < failedFor {
		return f.err
	}
	return nil
}

// Anew forgets that: the server was mended.
func (s *Stored) Anew() { s.failed.Store(nil) }

// Unstored returns why the bucket stored nothing of what was written last; nil: it did.
func (b *Bucket) Unstored() error {
	if err := b.stored.Failed(); err != nil {
		return fmt.Errorf("%s: %w", b.stream, err)
	}
	return nil
}

// Anew forgets that: the server was mended.
func (b *Bucket) Anew() { b.stored.Anew() }
