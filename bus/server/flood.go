package server

import (
	"context"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus/server/access"
)

const (
	// floodLook is how often it is looked how much is sent.
	floodLook = 500 * time.Millisecond
	// floodAway is for how long credentials are refused by which too much was sent.
	floodAway = 10 * time.Second
	// floodBytes is how many bytes a second an agent's credentials may send, and floodBurst how
	// many at once beyond that: a long conversation is handed in at once.
	floodBytes, floodBurst = 64 << 20, 128 << 20
	// hostShare is how many times that a host's credentials may send, for all of its agents.
	hostShare = 2
)

// A Flood is how much one agent's credentials may send to a server. More than a broker reads
// would have the server cut off the broker, so that it stops the sender first.
type Flood struct {
	// Messages is how many a second, and 64 MiB with them; a host's may send twice as much.
	// 0: any number.
	Messages int
	// Sent hears the name in credentials that sent more; nil: nothing does. It must not block.
	Sent func(name string)
}

// floodShare is how many times what an agent may send a role may; 0: any number.
func floodShare(role access.Role) int64 {
	switch role {
	case access.Agent:
		return 1
	case access.Host:
		return hostShare
	}
	return 0
}

// sent is what a connection, a user, or all of a server, has sent.
type sent struct{ messages, bytes int64 }

func (s sent) minus(o sent) sent  { return sent{s.messages - o.messages, s.bytes - o.bytes} }
func (s sent) plus(o sent) sent   { return sent{s.messages + o.messages, s.bytes + o.bytes} }
func (s sent) times(n int64) sent { return sent{s.messages * n, s.bytes * n} }

// above reports whether more was sent than o, of either.
func (s sent) above(o sent) bool { return s.messages > o.messages || s.bytes > o.bytes }

// most is what may be sent in so long.
func (f *Flood) most(in time.Duration) sent {
	return sent{int64(float64(f.Messages) * in.Seconds()), int64(floodBytes * in.Seconds())}
}

// A floodCause says when to look at each connection. That costs some microseconds for each of
// them, and in a large fleet much is sent at all times.
type floodCause struct {
	// calm is how much was sent in all when it was looked last, and by no credentials too much.
	calm sent
	// since is how many times it was not looked since then.
	since int
}

// floodAgain is after how many times it is looked again, although no more is sent than before.
const floodAgain = 20

// looks reports whether to look, where so much was sent in all, and most by one agent at most.
func (f *floodCause) looks(all, most sent) bool {
	f.since++
	f.calm = sent{min(f.calm.messages, all.messages), min(f.calm.bytes, all.bytes)}
	return (sent{all.messages / 2, all.bytes}).above(most) && (f.since > floodAgain || all.minus(f.calm).above(most))
}

// none notes that no credentials sent too much, where so much was sent in all.
func (f *floodCause) none(all sent) { f.calm, f.since = all, 0 }

// watchFloods refuses those that send too much, until ctx ends.
func (b *connections) watchFloods(ctx context.Context) {
	tick := time.NewTicker(floodLook)
	defer tick.Stop()
	var all sent
	var before map[uint64]sent // of each connection, at the last look; nil: there was none
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

// look returns what each connection has sent, and refuses credentials that are too far ahead of
// the most that they may have sent since before.
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

// cutOff refuses a user's credentials for a while. The lock is held.
func (b *connections) cutOff(key string, s sent) {
	now, u := time.Now(), b.users[key]
	u.cutOff = now.Add(floodAway)
	if b.flood.Sent != nil {
		b.flood.Sent(u.name)
	}
	err := b.auth.cut(b.server, cutOff{u.account, key, u.cutOff})
	if err != nil {
		for id := range u.ids {
			_ = b.server.DisconnectClientByID(id) // it may have gone meanwhile
		}
	}
	if err != nil || now.Sub(u.loggedFlood) >= tooManyLogged {
		u.loggedFlood = now
		b.log.Warn("credentials exceeded --agent-messages, or twice that for a host, and the server refuses them for a while; stop the program that sends so much, or revoke the credentials",
			"name", u.name, "role", u.role, "user", key, "messages", s.messages, "bytes", s.bytes, "for", floodAway, "error", err)
	}
}
