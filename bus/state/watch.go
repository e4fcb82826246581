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
	// lookAgain is how often the pointer is read although nobody said that it
	// changed: a watcher is silent for seconds when a leader leaves.
	lookAgain = 5 * time.Second
	// lookSoon is how soon it is read again when that did not work.
	lookSoon = time.Second
)

// An Update is what a node needs to know of the configuration at one moment.
type Update struct {
	// Fabric is the id of the fabric: another one's versions have the same
	// numbers.
	Fabric string
	// Active is the active version; nil: nothing was applied yet.
	Active *schema.Config
	// Candidate is the version that is proposed; nil: none, or it is bad.
	Candidate *schema.Config
	// Bad is the proposed version if it cannot be read; nil: it can.
	Bad *BadVersion
	// Keep are the versions that nodes hold on to, newest first: the candidate
	// and the newest [KeptConfigs] that are or were active.
	Keep []uint64
}

// A BadVersion is a version that cannot be read.
type BadVersion struct {
	Version uint64
	Err     error
}

// errWatched says that a second Watch of one Configs was asked for.
var errWatched = errors.New("these versions already have a watcher; open the bucket again for another one")

// Watch calls use with what is active and proposed, also when nothing is, and
// again whenever that changed, until ctx ends; then it returns nil. What
// changes faster than it can be read is skipped. An active version that can
// not be read is logged, looked at again, and does not replace the one before.
// An error is the end of the connection.
//
// use is called on Watch's own goroutine, and [Configs.Confirm] and with it every
// renewal of a [Lease] waits for it: what takes long, such as getting a
// candidate ready, belongs elsewhere, and use must not wait for either. Each
// version is read once, so that a candidate that becomes active is the same
// pointer; what they point to must not be changed. One Watch may be on at a time.
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

// Confirm has the Watch that is on read from the leader what is active and
// proposed. When it returns nil, use has been told all that was so when Confirm
// was called.
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

// A watcher decides when to look.
type watcher struct {
	configs  *Configs
	follower follower
	keys     jetstream.KeyWatcher
	updates  <-chan jetstream.KeyValueEntry
	// tried is when the bucket was last asked to be watched.
	tried time.Time
	// again ends when it is time to look although nobody said so.
	again *time.Timer
}

// start watches the bucket if that is not so, but does not try all the time.
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

// heard looks because somebody said that the pointer changed; a nil entry only
// ends what was there before.
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
		// The replica that said so may know more than the leader has at hand.
		if w.follower.failed != nil || w.follower.revision >= e.Revision() || i == 5 || kv.Again(ctx, i) != nil {
			return
		}
	}
}

// look has the follower take over what the leader says, whoever said what.
func (w *watcher) look(ctx context.Context) { w.again.Reset(w.follower.again(ctx)) }
