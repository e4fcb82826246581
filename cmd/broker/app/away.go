package app

import (
	"context"
	"log/slog"
	"time"
)

const (
	// lookAtLease is how often it is looked whether the broker may answer.
	lookAtLease = time.Second
	// awayAfter is for how long it may not before its clients are sent away: one that
	// only stood still finds out sooner that it may.
	awayAfter = 2 * time.Second
	// leaveIn is how long they have: clients of ours take a moment in which they have
	// nothing under way.
	leaveIn = 5 * time.Second
)

// doors are what of a server takes part in sending clients away.
type doors interface {
	AskToLeave() (told []uint64, err error)
	Drop(told []uint64) (dropped int)
}

// An usher sends the clients of a broker to the others of its cluster when it is cut off
// from them, so that it may answer no call: their calls would wait in vain. Who comes
// later, or comes back, finds nobody else and stays.
type usher struct {
	fresh func(now time.Time) bool
	doors doors
	log   *slog.Logger

	since time.Time // when the broker was first seen not to be fresh; zero: it is
	asked time.Time // when clients were asked to leave; zero: they were not
	told  []uint64  // those that were
}

// look does what is due.
func (u *usher) look(now time.Time) {
	switch {
	case u.fresh(now):
		u.since, u.asked, u.told = time.Time{}, time.Time{}, nil
	case u.since.IsZero():
		u.since = now
	case u.asked.IsZero() && now.Sub(u.since) >= awayAfter:
		u.asked = now
		u.ask()
	case u.told != nil && now.Sub(u.asked) >= leaveIn:
		if n := u.doors.Drop(u.told); n > 0 {
			u.log.Warn("closed connections of clients that did not move to another server", "clients", n)
		}
		u.told = nil
	}
}

func (u *usher) ask() {
	var err error
	if u.told, err = u.doors.AskToLeave(); err != nil {
		u.log.Error("this broker is cut off from its cluster, and cannot redirect its clients", "error", err)
		return
	}
	u.log.Warn("this broker is cut off from its cluster and answers no call; it redirects its clients to the other brokers", "clients", len(u.told))
}

// run looks until ctx ends.
func (u *usher) run(ctx context.Context) {
	tick := time.NewTicker(lookAtLease)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			u.look(now)
		}
	}
}

// startUsher has clients sent away, in a cluster, until the broker stops.
func (b *Broker) startUsher(ctx context.Context) {
	if b.server == nil || !b.server.Clustered() {
		return
	}
	u := &usher{fresh: b.lease.Fresh, doors: b.server, log: b.log}
	b.beside(ctx, "client watch", u.run)
}
