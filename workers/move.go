package workers

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// How a worker moves to another NATS server. It takes no new batches and finishes those under
// way, because they would be lost with the connection. If that takes too long, it takes
// batches again and tries later.
const (
	holdFor   = 400 * time.Millisecond
	holdAgain = 100 * time.Millisecond
	// sentFor is how long a batch may be on its way that was sent before the sender
	// heard that the worker moves.
	sentFor = 50 * time.Millisecond
	// moveWithin is how long the server may take to stop, and reachFor how long to
	// reach another one.
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

// beside does something beside the batches, unless the service ends.
func (s *Service) beside(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining {
		s.done.Go(do)
	}
}

// move goes to another server in a moment in which nothing is in hand.
func (s *Service) move(ctx context.Context, nc *nats.Conn) {
	ctx, cancel := context.WithTimeout(ctx, moveWithin)
	defer cancel()
	for nc.IsConnected() && pause(ctx, holdAgain) {
		idle := s.hold()
		if pause(ctx, sentFor) && within(ctx, idle, holdFor) {
			s.reconnect(nc)
			s.release()
			return
		}
		s.release()
	}
}

// reconnect waits for another server. What it says there first is that it is back.
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

// hold says that the worker moves, and takes nothing. idle is closed when nothing is
// in hand.
func (s *Service) hold() (idle chan struct{}) {
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

// release takes batches again.
func (s *Service) release() {
	s.mu.Lock()
	s.idle = nil
	s.w.moving.Store(false)
	s.mu.Unlock()
	s.beatOnce()
}

// pause waits, and reports whether there is still time after that.
func pause(ctx context.Context, d time.Duration) bool {
	within(ctx, nil, d)
	return ctx.Err() == nil
}

// within reports whether something comes about in time.
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
