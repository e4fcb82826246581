package server

import (
	"context"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus/server/access"
)

const (
	// floodLook is the interval of checks.
	floodLook = 500 * time.Millisecond
	// floodAway is how long credentials that sent too much are refused.
	floodAway = 10 * time.Second
	// floodBytes is how many bytes per second an agent's credentials may send, and floodBurst how
	// many more at once, because a long conversation is sent at once.
	floodBytes, floodBurst = 64 << 20, 128 << 20
	// hostShare is the factor of these limits for a host's credentials.
	hostShare = 2
)

// A Flood limits how much one agent's credentials may send to a server. With more than the broker can
// read, the server would disconnect the broker, so it stops the sender first.
type Flood struct {
	// Messages is the limit of messages per second, together with 64 MiB per second; both are
	// doubled for a host. 0: no limit.
	Messages int
	// Sent is called with the name of credentials that exceeded the limit; nil: no call. It must
	// not block.
	Sent func(name string)
}

// floodShare returns the factor of the limits for a role; 0: no limit.
func floodShare(role access.Role) int64 {
	switch role {
	case access.Agent:
		return 1
	case access.Host:
		return hostShare
	}
	return 0
}

// sent is how much a connection, a user or all clients of a server have sent.
type sent struct{ messages, bytes int64 }

func (s sent) minus(o sent) sent  { return sent{s.messages - o.messages, s.bytes - o.bytes} }
func (s sent) plus(o sent) sent   { return sent{s.messages + o.messages, s.bytes + o.bytes} }
func (s sent) times(n int64) sent { return sent{s.messages * n, s.bytes * n} }

// above reports whether s exceeds o in messages or bytes.
func (s sent) above(o sent) bool { return s.messages > o.messages || s.bytes > o.bytes }

// most returns the limit for a period.
func (f *Flood) most(in time.Duration) sent {
	return sent{int64(float64(f.Messages) * in.Seconds()), int64(floodBytes * in.Seconds())}
}

// A floodCause decides when to check each connection. A check costs some microseconds per connection, and
// in a large fleet the total is always high.
type floodCause struct {
	// calm is the total of the last check that found no flood.
	calm sent
	// since is the number of skipped checks since then.
	since int
}

// floodAgain is how many checks are skipped at most while the total does not rise.
const floodAgain = 20

// looks reports whether to check, given the total and the limit of one agent.
func (f *floodCause) looks(all, most sent) bool {
	f.since++
	f.calm = sent{min(f.calm.messages, all.messages), min(f.calm.bytes, all.bytes)}
	return (sent{all.messages / 2, all.bytes}).above(most) && (f.since > floodAgain || all.minus(f.calm).above(most))
}

// none records that a check found no flood at this total.
func (f *floodCause) none(all sent) { f.calm, f.since = all, 0 }

// watchFloods refuses credentials that send too much, until ctx ends.
func (b *connections) watchFloods(ctx context.Context) {
	tick := time.NewTicker(floodLook)
	defer tick.Stop()
	var all sent
	var before map[uint64]sent // of each connection at the last check; nil: none
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		v, err := b.server.Varz(nil)
		if err != nil {
			continue // the server stops
		}
		total, most := sent{v.InMsgs, v.InBytes}, b.flood.most(now.Sub(last))
		switch d := total.minus(all); {
		case before != nil:
			if before = b.look(before, most); len(b.ahead) == 0 {
				b.cause.none(d)
				before = nil
			}
		case b.cause.looks(d, most):
			before = b.look(nil, most)
		}
		all, last = total, now
	}
}

// look returns how much each connection has sent, and refuses credentials that exceeded the limit by too
// much since the last check.
func (b *connections) look(before map[uint64]sent, most sent) map[uint64]sent {
	list, err := b.server.Connz(&server.ConnzOptions{Limit: mostConnections})
	if err != nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now, users := make(map[uint64]sent, len(list.Conns)), make(map[string]sent)
	for _, c := range list.Conns {
		s := sent{c.InMsgs, c.InBytes}
		now[c.Cid] = s
		key := b.of[c.Cid]
		if u := b.users[key]; before != nil && u != nil && floodShare(u.role) > 0 {
			users[key] = users[key].plus(s.minus(before[c.Cid]))
		}
	}
	ahead := make(map[string]sent)
	for key, s := range users {
		n := floodShare(b.users[key].role)
		s = s.plus(b.ahead[key]).minus(most.times(n))
		switch {
		case s.above(sent{int64(b.flood.Messages), floodBurst}.times(n)):
			b.cutOff(key, s)
			ahead[key] = sent{}
		case s.above(sent{}):
			ahead[key] = sent{max(s.messages, 0), max(s.bytes, 0)}
		}
	}
	b.ahead = ahead
	return now
}

// cutOff refuses a user's credentials for a while. The caller holds the lock.
func (b *connections) cutOff(key string, s sent) {
	now, u := time.Now(), b.users[key]
	u.cutOff = now.Add(floodAway)
	if b.flood.Sent != nil {
		b.flood.Sent(u.name)
	}
	err := b.auth.cut(b.server, cutOff{u.account, key, u.cutOff})
	if err != nil {
		for id := range u.ids {
			_ = b.server.DisconnectClientByID(id) // fails if it has closed by itself
		}
	}
	if err != nil || now.Sub(u.loggedFlood) >= tooManyLogged {
		u.loggedFlood = now
		b.log.Warn("credentials exceeded --agent-messages, or twice that for a host, and the server refuses them for a while; stop the program that sends so much, or revoke the credentials",
			"name", u.name, "role", u.role, "user", key, "messages", s.messages, "bytes", s.bytes, "for", floodAway, "error", err)
	}
}
