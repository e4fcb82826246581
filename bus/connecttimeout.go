package bus

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A connectTimeout is the time limit of one attempt to connect. It doubles from least to
// [DialLimit] with each attempt in a row that ran out of time. A client with several servers
// thus leaves a hanging one quickly. When all clients of a server return at once, the server
// gets the time that it needs; with a fixed limit it would work for clients that gave up.
type connectTimeout struct {
	least time.Duration
	late  atomic.Int32 // attempts in a row that ran out of time
}

// next returns the limit of the next attempt.
func (c *connectTimeout) next() time.Duration {
	d := c.least
	for range c.late.Load() {
		if d >= DialLimit {
			return DialLimit
		}
		d *= 2
	}
	return d
}

// pause returns how long to wait after so many attempts at all servers. After attempts that
// ran out of time it adds up to one limit, which spreads the load of the server.
func (c *connectTimeout) pause(attempts int) time.Duration {
	d := reconnectDelay(attempts)
	if c.late.Load() > 0 {
		d += rand.N(c.next())
	}
	return d
}

// record records the end of an attempt, and whether it ran out of time.
func (c *connectTimeout) record(late bool) {
	if late {
		c.late.Add(1)
		return
	}
	c.late.Store(0)
}

// A handshake is the first exchange between client and server. The connection is usable
// after it.
type handshake struct {
	timeout *connectTimeout
	until   time.Time // deadline; zero: the handshake is over
	expired bool      // the server did not send its part before until
}

// deadline replaces the deadline that the client sets for the handshake.
func (h *handshake) deadline(t time.Time) time.Time {
	switch {
	case !t.IsZero():
		t = time.Now().Add(h.timeout.next())
		h.until = t
	case !h.until.IsZero():
		h.timeout.record(!time.Now().Before(h.until))
		h.until = t
	}
	return t
}
