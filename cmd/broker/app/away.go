package app

import (
	"context"
	"log/slog"
	"time"
)

const (
	// lookAtLease is how often the broker checks whether its lease permits answers.
	lookAtLease = time.Second
	// awayAfter is how long it must not answer before it redirects its clients. A broker that
	// was only suspended renews its lease sooner.
	awayAfter = 2 * time.Second
	// leaveIn is how long the clients have to move. Clients of the fabric leave when they have no
	// call in progress.
	leaveIn = 5 * time.Second
)

// A redirecter is a server that can send its clients to other servers.
type redirecter interface {
	AskToLeave() (asked []uint64, err error)
	Drop(asked []uint64) (dropped int)
}

// A clientRedirect sends the clients of a broker to the others of its cluster when it is cut off
// from them and may answer no call. A client that connects later stays, because it reaches no
// other broker.
type clientRedirect struct {
	fresh  func(now time.Time) bool
	server redirecter
	log    *slog.Logger

	since   time.Time // when the lease was first found expired; zero: it is valid
	askedAt time.Time // when clients were asked to leave; zero: they were not
	asked   []uint64  // the clients that were asked
}

// check does what is due.
func (r *clientRedirect) check(now time.Time) {
	switch {
	case r.fresh(now):
		r.since, r.askedAt, r.asked = time.Time{}, time.Time{}, nil
	case r.since.IsZero():
		r.since = now
	case r.askedAt.IsZero() && now.Sub(r.since) >= awayAfter:
		r.askedAt = now
		r.ask()
	case r.asked != nil && now.Sub(r.askedAt) >= leaveIn:
		if n := r.server.Drop(r.asked); n > 0 {
			r.log.Warn("closed connections of clients that did not move to another server", "clients", n)
		}
		r.asked = nil
	}
}

func (r *clientRedirect) ask() {
	var err error
	if r.asked, err = r.server.AskToLeave(); err != nil {
		r.log.Error("this broker is cut off from its cluster, and cannot redirect its clients", "error", err)
		return
	}
	r.log.Warn("this broker is cut off from its cluster and answers no call; it redirects its clients to the other brokers", "clients", len(r.asked))
}

// run checks once a second until ctx ends.
func (r *clientRedirect) run(ctx context.Context) {
	tick := time.NewTicker(lookAtLease)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			r.check(now)
		}
	}
}

// startRedirect starts a clientRedirect in a cluster; it runs until the broker stops.
func (b *Broker) startRedirect(ctx context.Context) {
	if b.server == nil || !b.server.Clustered() {
		return
	}
	r := &clientRedirect{fresh: b.lease.Fresh, server: b.server, log: b.log}
	b.inBackground(ctx, "client watch", r.run)
}
