package workers

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// A worker moves to another NATS server without open batches, because they would be lost
// with the connection. It takes no new batches and finishes those in progress. If that
// takes too long, it takes batches again and tries later.
const (
	holdFor   = 400 * time.Millisecond
	holdAgain = 100 * time.Millisecond
	// sentFor is how long a batch may be in transit that was sent before the aggregator
	// learned of the move.
	sentFor = 50 * time.Millisecond
	// moveWithin is how long the server may take to stop, and reachFor the limit for
	// reaching another one.
	moveWithin = 5 * time.Second
	reachFor   = 5 * time.Second
)

// Leave moves the worker to another NATS server, because its own server is about to stop.
// Set it as [bus.Options.OnLeaving] of the worker's connection.
func (w *Worker) Leave(nc *nats.Conn) {
	if leave, ok := w.leaving.Load().(func(*nats.Conn)); ok {
		leave(nc)
	}
}

// goBeside runs do in the background until the service ends.
func (s *Service) goBeside(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining {
		s.done.Go(do)
	}
}

// move goes to another server while no batch is in progress.
func (s *Service) move(ctx context.Context, nc *nats.Conn) {
	ctx, cancel := context.WithTimeout(ctx, moveWithin)
	defer cancel()
	for nc.IsConnected() && pause(ctx, holdAgain) {
		idle := s.startMove()
		if pause(ctx, sentFor) && within(ctx, idle, holdFor) {
			s.reconnect(nc)
			s.endMove()
			return
		}
		s.endMove()
	}
}

// reconnect waits for another server. The first message there says that the worker is
// back.
func (s *Service) reconnect(nc *nats.Conn) {
	connected := nc.StatusChanged(nats.CONNECTED)
	defer nc.RemoveStatusListener(connected)
	if err := nc.ForceReconnect(); err != nil {
		s.w.opt.Logger.Warn("the NATS server is about to stop, and the worker cannot reach another one; it stays connected and tries again", "error", err)
		return
	}
	t := time.NewTimer(reachFor)
	defer t.Stop()
	select {
	case <-connected:
	case <-t.C:
	}
}

// startMove announces the move and stops taking batches. idle is closed when no batch is
// in progress.
func (s *Service) startMove() (idle chan struct{}) {
	s.mu.Lock()
	s.idle = make(chan struct{})
	if idle = s.idle; s.under == 0 {
		close(idle)
		s.idle = nil
	}
	s.w.moving.Store(true)
	s.mu.Unlock()
	s.beatOnce()
	return idle
}

// endMove takes batches again.
func (s *Service) endMove() {
	s.mu.Lock()
	s.idle = nil
	s.w.moving.Store(false)
	s.mu.Unlock()
	s.beatOnce()
}

// pause waits, and reports whether ctx is still alive afterwards.
func pause(ctx context.Context, d time.Duration) bool {
	within(ctx, nil, d)
	return ctx.Err() == nil
}

// within reports whether done is closed in time.
func within(ctx context.Context, done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}
