package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// lookAtStore is how often the broker checks that configurations can be stored.
	lookAtStore = 5 * time.Second
	// silentFor is how long a running store must not answer before it is restarted. If thousands
	// of clients return at once it may only be slow, and a restart would make it slower.
	silentFor = time.Minute
)

// The errors of a JetStream that takes no writes.
var (
	errNotStored = errors.New("the broker cannot write to its data directory, so the configuration cannot be changed; check whether the disk is full. The active configuration still answers calls")
	errForgetful = errors.New("the broker cannot store messages for agents; check whether the disk is full. Calls are answered without these messages")
	errCutOff    = errors.New("JetStream does not answer or refuses writes, so the broker cannot know which configuration is active and answers no call; check the NATS servers and their disks")
)

// trouble returns why the broker cannot do all of its work; nil: it can.
func (b *Broker) trouble() error {
	failing := b.failing()
	if b.shares() {
		return failing
	}
	if failing == nil {
		return b.server.Full()
	}
	return cmp.Or(b.unstorable(), failing)
}

// failing returns the part of [Broker.trouble] that a restart of JetStream may end.
func (b *Broker) failing() error {
	switch {
	case b.lease.Fresh(time.Now()):
		if err := b.memory.unstored(); err != nil {
			return fmt.Errorf("%w: %w", errForgetful, err)
		}
		return b.memory.freezes.Unreadable()
	case !b.shares():
		return errNotStored
	}
	return errCutOff
}

// unstorable returns why the embedded server takes no writes; nil: it does, or other servers
// store, too.
func (b *Broker) unstorable() error {
	if b.shares() {
		return nil
	}
	return b.server.Unstorable()
}

// startWatchingStore watches the store until the broker stops.
func (b *Broker) startWatchingStore(ctx context.Context) {
	b.inBackground(ctx, "storage watch", b.watchStore)
}

// watchStore logs when configurations cannot be stored, and restarts JetStream in the embedded
// server when its disk has space again.
func (b *Broker) watchStore(ctx context.Context) {
	tick := time.NewTicker(lookAtStore)
	defer tick.Stop()
	var last error
	mended := false     // JetStream was restarted since storing failed last, although nothing fails
	var since time.Time // since when writes fail, or the last restart; zero: they succeed
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := b.trouble()
		failing := b.failing() != nil
		broken := failing || b.unstorable() != nil
		mended = mended && broken
		switch unstored := !b.lease.Stored() || b.memory.unstored() != nil; {
		case !unstored:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		}
		switch {
		case now != nil && last == nil:
			b.log.Error("the broker is in trouble", "error", now)
		case now == nil && last != nil:
			b.log.Info("the broker is no longer in trouble")
		}
		// If only a stream that the broker does not need now is broken, one restart must do.
		if broken && (failing || !mended) && b.mendable(!since.IsZero() && time.Since(since) >= silentFor) {
			mended = b.mend()
			since = time.Time{}
		}
		last = now
	}
}

// mendable reports whether a restart of the store may help; silent: it has not answered for long.
func (b *Broker) mendable(silent bool) bool {
	return b.stores() && helps(!b.server.Stores(), b.server.Clustered(), b.server.Broken() != nil, silent)
}

// helps reports whether to restart a store: it is off, cannot write, or has been silent for long. In
// a cluster only a store that is off is restarted. Other failures may mean that there is no leader,
// and a restarted server cannot help to elect one.
func helps(off, clustered, broken, silent bool) bool {
	return off || !clustered && (broken || silent)
}

// mend restarts JetStream if there is space for it, and reports whether it did.
func (b *Broker) mend() bool {
	if err := b.server.Mend(); err != nil {
		b.log.Error("JetStream cannot be restarted yet", "error", err)
		return false
	}
	b.memory.clearUnstored()
	b.log.Info("JetStream was restarted on its data directory")
	return true
}
