package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/bus"
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
	// Bad is the proposed version if it can not be read; nil: it can.
	Bad *BadVersion
	// Keep are the versions that nodes hold on to, newest first: the candidate
	// and the newest [KeptConfigs] that are or were active.
	Keep []uint64
}

// A BadVersion is a version that can not be read.
type BadVersion struct {
	Version uint64
	Err     error
}

// errWatched says that a second Watch of one Configs was asked for.
var errWatched = errors.New("these versions are watched already; open the bucket once more for another watcher")

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
	w := watcher{configs: c, follower: follower{configs: c, use: use}, again: time.NewTimer(0)}
	defer w.again.Stop()
	defer w.stop()
	for {
		w.start(ctx)
		select {
		case <-ctx.Done():
			return nil
		case answer := <-c.questions:
			w.look(ctx)
			answer <- w.err
		case e, open := <-w.updates:
			w.heard(ctx, e, open)
		case <-w.told:
			w.look(ctx)
		case <-w.again.C:
			w.look(ctx)
		}
		if errors.Is(w.err, nats.ErrConnectionClosed) {
			return fmt.Errorf("watching the configuration: %w", w.err)
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
	// listening has brokers' word that something changed come to told, in the place of
	// keys where nothing may be left on the server.
	listening *nats.Subscription
	told      chan struct{}
	// tried is when the bucket was last asked to be watched.
	tried time.Time
	// again ends when it is time to look although nobody said so.
	again *time.Timer
	// err is what came of the last look.
	err error
}

// start watches the bucket if that is not so, but does not try all the time.
func (w *watcher) start(ctx context.Context) {
	if w.keys != nil || w.listening != nil || ctx.Err() != nil || time.Since(w.tried) < lookAgain {
		return
	}
	w.tried = time.Now()
	var keys jetstream.KeyWatcher
	var err error
	if w.configs.readOnly {
		err = w.listen()
	} else {
		keys, err = w.configs.kv.Watch(ctx, currentKey)
	}
	if err != nil {
		w.configs.log.Warn("the configuration is not watched, only looked at now and then", "error", err)
		return
	}
	if w.keys = keys; keys != nil {
		w.updates = keys.Updates()
	}
}

// listen has brokers tell when they changed something.
func (w *watcher) listen() (err error) {
	w.told = make(chan struct{}, 1)
	w.listening, err = w.configs.js.Conn().Subscribe(bus.ConfigChanged, func(*nats.Msg) {
		select {
		case w.told <- struct{}{}:
		default: // it is looked at anyway
		}
	})
	return err
}

func (w *watcher) stop() {
	if w.keys != nil {
		_ = w.keys.Stop()
	}
	if w.listening != nil {
		_ = w.listening.Unsubscribe() // the connection may be closed already
	}
	w.keys, w.updates, w.listening = nil, nil, nil
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
		if w.err != nil || w.follower.revision >= e.Revision() || i == 5 || kv.Again(ctx, i) != nil {
			return
		}
	}
}

// look has the follower take over what the leader says, whoever said what.
func (w *watcher) look(ctx context.Context) {
	err := w.follower.look(ctx)
	if err != nil && ctx.Err() == nil && (w.err == nil || w.err.Error() != err.Error()) {
		w.configs.log.Warn("the configuration could not be followed; looking again soon", "error", err)
	}
	w.err = err
	wait := lookAgain
	if err != nil || w.follower.seen.Bad != nil {
		wait = lookSoon
	}
	w.again.Reset(wait)
}
