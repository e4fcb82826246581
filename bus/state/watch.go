package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// lookAgain is how often the pointer is read without a notification, because a watcher is
	// silent for seconds when a leader stops.
	lookAgain = 5 * time.Second
	// lookSoon is the interval after a failed read.
	lookSoon = time.Second
)

// An Update is the state of the configuration for a node.
type Update struct {
	// Fabric is the id of the fabric; versions of different fabrics have the same numbers.
	Fabric string
	// Active is the active version; nil: none yet.
	Active *schema.Config
	// Candidate is the proposed version; nil: none, or it is unreadable.
	Candidate *schema.Config
	// Bad is the proposed version if it is unreadable; nil: it is not.
	Bad *BadVersion
	// Keep are the versions that nodes keep, newest first: the candidate and the newest
	// [KeptConfigs] that are or were active.
	Keep []uint64
}

// A BadVersion is a version that cannot be read.
type BadVersion struct {
	Version uint64
	Err     error
}

// errWatched is the error of a second Watch of one Configs.
var errWatched = errors.New("these versions already have a watcher; open the bucket again for another one")

// Watch calls use with the active and the proposed version, also without one, and again after
// each change, until ctx ends. Then it returns nil. Fast changes may be skipped. An active version that
// is unreadable is logged and read again, and does not replace the previous one. An error means that the
// connection is closed.
//
// use runs on Watch's goroutine. [Configs.Confirm] waits for it, and so does each renewal of a [Lease]:
// use must be fast and must wait for neither. Each version is read once, so a candidate that becomes
// active is the same pointer. The configurations must not be changed. Only one Watch may run at a time.
func (c *Configs) Watch(ctx context.Context, use func(Update)) error {
	if !c.watched.CompareAndSwap(false, true) {
		return errWatched
	}
	defer c.watched.Store(false)
	w := watcher{configs: c, again: time.NewTimer(0), follower: follower{
		from: c, log: c.log, seen: Update{Fabric: c.FabricID()},
		use: func(u Update) {
			c.fabric.Store(&u.Fabric)
			use(u)
		},
	}}
	defer w.again.Stop()
	defer w.stop()
	for {
		w.start(ctx)
		select {
		case <-ctx.Done():
			return nil
		case answer := <-c.questions:
			w.look(ctx)
			answer <- w.follower.failed
		case e, open := <-w.updates:
			w.heard(ctx, e, open)
		case <-w.again.C:
			w.look(ctx)
		}
		if err := w.follower.failed; errors.Is(err, nats.ErrConnectionClosed) {
			return fmt.Errorf("watching the configuration: %w", err)
		}
	}
}

// Confirm makes the running Watch read the state from the leader. When it returns nil, use has received
// everything that was decided before the call.
func (c *Configs) Confirm(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case c.questions <- answer:
	case <-ctx.Done():
		return fmt.Errorf("confirming the configuration: %w", context.Cause(ctx))
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("confirming the configuration: %w", context.Cause(ctx))
	}
}

// A watcher decides when to read the pointer.
type watcher struct {
	configs  *Configs
	follower follower
	keys     jetstream.KeyWatcher
	updates  <-chan jetstream.KeyValueEntry
	// tried is when the last watch was attempted.
	tried time.Time
	// again fires when the pointer is read without a notification.
	again *time.Timer
}

// start starts to watch the bucket, at most once per lookAgain.
func (w *watcher) start(ctx context.Context) {
	if w.keys != nil || ctx.Err() != nil || time.Since(w.tried) < lookAgain {
		return
	}
	w.tried = time.Now()
	keys, err := w.configs.kv.Watch(ctx, currentKey)
	if err != nil {
		w.configs.log.Warn("cannot watch the configuration; the broker reads it at intervals instead", "error", err)
		return
	}
	w.keys, w.updates = keys, keys.Updates()
}

func (w *watcher) stop() {
	if w.keys != nil {
		_ = w.keys.Stop()
	}
	w.keys, w.updates = nil, nil
}

// heard reads the pointer after a notification. A nil entry only ends the initial values.
func (w *watcher) heard(ctx context.Context, e jetstream.KeyValueEntry, open bool) {
	if !open {
		w.stop()
		return
	}
	if e == nil {
		return
	}
	for i := 0; ; i++ {
		w.look(ctx)
		// The replica with the change may be ahead of the leader.
		if w.follower.failed != nil || w.follower.revision >= e.Revision() || i == 5 || kv.Again(ctx, i) != nil {
			return
		}
	}
}

// look makes the follower read the leader's state.
func (w *watcher) look(ctx context.Context) { w.again.Reset(w.follower.again(ctx)) }
