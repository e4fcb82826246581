package natsconn

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Reconnects. A lost server is tried again without an end: first about every 200 to 400 ms,
// because a restart takes no longer, and then less often.
const (
	reconnectWait  = 200 * time.Millisecond
	reconnectSoon  = 5 // attempts
	reconnectLimit = 4 * time.Second
)

// DialLimit bounds one attempt to connect, after shorter attempts ran out of time.
const DialLimit = 16 * time.Second

// reconnectDelay returns how long to wait after so many attempts at all servers: a random
// time between the least delay and twice that, so that clients do not return at once.
func reconnectDelay(attempts int) time.Duration {
	least := reconnectWait
	for ; attempts > reconnectSoon && least < reconnectLimit/2; attempts-- {
		least = least * 3 / 2
	}
	least = min(least, reconnectLimit/2)
	return least + rand.N(least)
}

// A handshakeLimit is the time limit of one attempt to connect. It doubles from least to
// [DialLimit] with each attempt in a row that ran out of time. A client with several servers
// thus leaves a hanging one quickly. When all clients of a server return at once, the server
// gets the time that it needs; with a fixed limit it would work for clients that gave up.
type handshakeLimit struct {
	least time.Duration
	late  atomic.Int32 // attempts in a row that ran out of time
}

// next returns the limit of the next attempt.
func (l *handshakeLimit) next() time.Duration {
	d := l.least
	for range l.late.Load() {
		if d >= DialLimit {
			return DialLimit
		}
		d *= 2
	}
	return d
}

// pause returns how long to wait after so many attempts at all servers. After attempts that
// ran out of time it adds up to one limit, which spreads the load of the server.
func (l *handshakeLimit) pause(attempts int) time.Duration {
	d := reconnectDelay(attempts)
	if l.late.Load() > 0 {
		d += rand.N(l.next())
	}
	return d
}

// record records the end of an attempt, and whether it ran out of time.
func (l *handshakeLimit) record(late bool) {
	if late {
		l.late.Add(1)
		return
	}
	l.late.Store(0)
}
