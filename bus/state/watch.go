package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// lookAgain is how often the active version is read although nobody said that
// it changed: a watcher is silent for seconds when a leader leaves.
const lookAgain = 5 * time.Second

// Watch calls use with the active configuration, if there is one, and with
// every one that becomes active later, in order, until ctx ends; then it
// returns nil. A version that is replaced before it could be read is skipped,
// and so is one that can not be read, which is logged. An error is the end of
// the connection. use is called on Watch's own goroutine.
func (c *Configs) Watch(ctx context.Context, use func(schema.Config)) error {
	f := follower{configs: c, use: use}
	defer f.stop()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		f.start(ctx)
		select {
		case <-ctx.Done():
			return nil
		case e, open := <-f.updates:
			f.heard(ctx, e, open)
		case <-tick.C:
			if err := f.look(ctx); err != nil {
				return err
			}
		}
	}
}

// A follower delivers versions that grow.
type follower struct {
	configs *Configs
	use     func(schema.Config)
	last    uint64
	watcher jetstream.KeyWatcher
	updates <-chan jetstream.KeyValueEntry
	// tried is when a watcher was last asked for.
	tried time.Time
}

// start asks for a watcher if there is none, but not all the time.
func (f *follower) start(ctx context.Context) {
	if f.watcher != nil || ctx.Err() != nil || time.Since(f.tried) < lookAgain {
		return
	}
	f.tried = time.Now()
	w, err := f.configs.kv.Watch(ctx, currentKey)
	if err != nil {
		f.configs.log.Warn("the configuration is not watched, only looked at now and then", "error", err)
		return
	}
	f.watcher, f.updates = w, w.Updates()
}

func (f *follower) stop() {
	if f.watcher != nil {
		_ = f.watcher.Stop()
	}
	f.watcher, f.updates = nil, nil
}

// heard follows what the watcher says; a nil entry ends its initial values.
func (f *follower) heard(ctx context.Context, e jetstream.KeyValueEntry, open bool) {
	if !open {
		f.stop()
		return
	}
	if e == nil || e.Operation() != jetstream.KeyValuePut {
		return
	}
	p, err := parsePointer(e.Value())
	if err == nil {
		err = f.follow(ctx, p.Version)
	}
	f.complain(ctx, err)
}

// look reads what is active, whatever the watcher says.
func (f *follower) look(ctx context.Context) error {
	p, _, err := f.configs.pointer(ctx)
	if err == nil && p.Version > 0 {
		err = f.follow(ctx, p.Version)
	}
	if errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("watching the configuration: %w", err)
	}
	f.complain(ctx, err)
	return nil
}

// follow delivers version if it is newer than all before, or another fabric's.
func (f *follower) follow(ctx context.Context, version uint64) error {
	other, err := f.configs.meet(ctx)
	if err != nil {
		return err
	}
	if other {
		f.configs.log.Warn("the fabric was made anew; its versions count from the start")
		f.last = 0
	}
	if version <= f.last {
		return nil
	}
	var cfg schema.Config
	for i := range 5 { // A replica may not know a new version yet.
		if cfg, err = f.configs.Get(ctx, version); !errors.Is(err, ErrNoVersion) {
			break
		}
		if err := again(ctx, i); err != nil {
			return err
		}
	}
	if err == nil {
		f.last = version
		cfg.Fabric = f.configs.FabricID()
		f.use(cfg)
	}
	return err
}

func (f *follower) complain(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		f.configs.log.Warn("the configuration could not be followed; looking again soon", "error", err)
	}
}
