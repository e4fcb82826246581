package app

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// lookAtStore is how often it is looked whether configurations can be stored.
	lookAtStore = 5 * time.Second
	// silentFor is for how long a store that runs must have answered nothing before it is
	// started again. Where thousands come back at once it may just be slow, and to start it
	// again then makes it slower.
	silentFor = time.Minute
)

// What it means when JetStream takes no writes.
var (
	errNotStored = errors.New("the broker cannot write to its data directory, so the configuration cannot be changed; check whether the disk is full. The active configuration still answers calls")
	errForgetful = errors.New("the broker cannot store messages for agents; check whether the disk is full. Calls are answered without these messages")
	errCutOff    = errors.New("JetStream does not answer or refuses writes, so the broker cannot know which configuration is active and answers no call; check the NATS servers and their disks")
)

// trouble is why the broker cannot do all of what it is for; nil: it can.
func (b *Broker) trouble() error {
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

// unstorable is why the embedded server takes no writes; nil: it does, or others store too.
func (b *Broker) unstorable() error {
	if b.shares() {
		return nil
	}
	return b.server.Unstorable()
}

// startWatchingStore watches the store until the broker stops.
func (b *Broker) startWatchingStore(ctx context.Context) {
	b.beside(ctx, "storage watch", b.watchStore)
}

// watchStore says when configurations cannot be stored any more, and brings
// the embedded server back when its disk has room again.
func (b *Broker) watchStore(ctx context.Context) {
	tick := time.NewTicker(lookAtStore)
	defer tick.Stop()
	var last error
	var since time.Time // since when nothing is stored, or the last attempt to end that; zero: all is
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := b.trouble()
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
		case now != nil && b.mendable(!since.IsZero() && time.Since(since) >= silentFor):
			b.mend()
			since = time.Time{}
		}
		last = now
	}
}

// mendable reports whether it may help to start the store again, which was silent for
// long or not.
func (b *Broker) mendable(silent bool) bool {
	return b.stores() && helps(!b.server.Stores(), b.server.Clustered(), b.server.Broken() != nil, silent)
}

// helps reports whether a store is to be started again: it is off, or knows that it can
// not write, or is silent for long. In a cluster it is only where this server's own is off:
// what cannot be stored there may just have no leader, and who starts again is one less
// to elect it.
func helps(off, clustered, broken, silent bool) bool {
	return off || !clustered && (broken || silent)
}

// mend brings JetStream back, if there is room for it.
func (b *Broker) mend() {
	if err := b.server.Mend(); err != nil {
		b.log.Error("JetStream cannot be restarted yet", "error", err)
		return
	}
	b.memory.anew()
	b.log.Info("JetStream was restarted on its data directory")
}
