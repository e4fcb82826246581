package remote

import (
	"context"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// reach tracks whether workers can be reached. After an outage, the connection for events may be
// back before the connection to the workers. An event taken then would find no worker, and hooks
// that are not fail-closed would be skipped.
type reach struct {
	nc *nats.Conn
	// back is called when the connection is restored, before events are taken.
	back func()
	// lost reports that the connection was lost and back has not returned since.
	lost atomic.Bool
}

// Ready reports whether they can be reached.
func (r *reach) Ready() bool { return !r.lost.Load() && r.nc.IsConnected() }

// Follow follows the connection until ctx ends.
func (r *reach) Follow(ctx context.Context) {
	changes := r.nc.StatusChanged(nats.CONNECTED, nats.DISCONNECTED, nats.RECONNECTING)
	defer r.nc.RemoveStatusListener(changes)
	for {
		select {
		case s := <-changes:
			if s != nats.CONNECTED {
				r.lost.Store(true)
				continue
			}
			r.back()
			r.lost.Store(false)
		case <-ctx.Done():
			return
		}
	}
}

// Wait returns when they can be reached, or the reason why ctx ended.
func (r *reach) Wait(ctx context.Context) error {
	changes := r.nc.StatusChanged(nats.CONNECTED)
	defer r.nc.RemoveStatusListener(changes)
	for !r.nc.IsConnected() {
		select {
		case <-changes:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if r.lost.Load() {
		r.back() // Follow may not have seen the change yet
	}
	return nil
}
