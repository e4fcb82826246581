package kv

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// Patient is how long a write must have waited for its timeout to count as a failure of the
	// stream, and not of a short deadline.
	Patient = 2 * time.Second
	// failedFor is how long a failed write counts if no other follows.
	failedFor = 30 * time.Second
)

// A Health tells whether writes to a stream succeed.
type Health interface {
	// Unstored returns the error of the last write; nil: it succeeded, or was long ago.
	Unstored() error
	// ClearUnstored forgets that error, after the server was restarted.
	ClearUnstored()
}

// Stored records whether writes to a stream succeed. A stream whose disk was full once rejects all
// writes until the server is restarted.
type Stored struct {
	// Stream is the name of the stream, for errors.
	Stream string
	failed atomic.Pointer[failure]
}

type failure struct {
	err error
	at  time.Time
}

// Note records the result of a write that began at a time.
func (s *Stored) Note(err error, began time.Time) {
	hasty := errors.Is(err, context.DeadlineExceeded) && time.Since(began) < Patient
	switch {
	case err == nil:
		s.failed.Store(nil)
	case !Refused(err) && !errors.Is(err, context.Canceled) && !hasty:
		s.failed.Store(&failure{err, time.Now()})
	}
}

// Unstored implements [Health].
func (s *Stored) Unstored() error {
	if f := s.failed.Load(); f != nil && time.Since(f.at) < failedFor {
		return fmt.Errorf("%s: %w", s.Stream, f.err)
	}
	return nil
}

// ClearUnstored implements [Health].
func (s *Stored) ClearUnstored() { s.failed.Store(nil) }
