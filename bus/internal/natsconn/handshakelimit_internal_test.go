package natsconn

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

const firstLimit = 2 * time.Second

// attempt makes one attempt at a server that greets after a delay, or never (0), and returns
// the time limit of the attempt.
func (c *handshakeLimit) attempt(t *testing.T, after time.Duration) time.Duration {
	t.Helper()
	here, there := net.Pipe()
	defer there.Close()
	g := newConn(here, time.Minute, c)
	defer g.Close()
	began := time.Now()
	if err := g.SetDeadline(began.Add(c.least)); err != nil { // as the client does
		t.Error(err)
	}
	until := c.next()
	if after > 0 {
		time.AfterFunc(after, func() { _, _ = there.Write([]byte("INFO")) })
	}
	_, err := g.Read(make([]byte, 4))
	served := after > 0 && after < until
	if served != (err == nil) || !served && !errors.Is(err, errHandshake) {
		t.Errorf("limit %v, and the server greets after %v: %v", until, after, err)
	}
	for range 2 { // TLS clears it, too
		if err := g.SetDeadline(time.Time{}); err != nil && served {
			t.Error(err)
		}
	}
	return until
}

func TestASlowServerGetsMoreTimeToGreet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := handshakeLimit{least: firstLimit}
		for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 16 * time.Second} {
			if got := c.attempt(t, 0); got != want {
				t.Errorf("the limit of attempt %d is %v; want %v", i+1, got, want)
			}
		}
		if got := c.attempt(t, 15*time.Second); got != DialLimit {
			t.Errorf("the limit is %v", got)
		}
		if got := c.attempt(t, time.Second); got != firstLimit {
			t.Errorf("after an attempt that succeeded the limit is %v", got)
		}
	})
}

// A client with two servers must reach the good one quickly.
func TestAHangingServerGetsNoMoreTimeIfAnotherOneAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := handshakeLimit{least: firstLimit}
		for range 5 {
			if got := c.attempt(t, 0); got != firstLimit {
				t.Errorf("the limit for the hanging server is %v", got)
			}
			c.attempt(t, time.Millisecond) // the other one
		}
	})
}

// Clients of a server that is too slow for all of them spread over the time that it needs.
func TestTheNextAttemptComesLaterAfterATimeout(t *testing.T) {
	c := handshakeLimit{least: firstLimit}
	longest := func() (d time.Duration) {
		for range 1000 {
			d = max(d, c.pause(1))
		}
		return d
	}
	if d := longest(); d > 2*reconnectWait {
		t.Errorf("without a timeout the client waits %v", d)
	}
	for range 4 {
		c.record(true)
		if d, most := longest(), c.next(); d < most*3/4 || d > most+2*reconnectWait {
			t.Errorf("the client waits %v, and an attempt may take %v", d, most)
		}
	}
	c.record(false)
	if d := longest(); d > 2*reconnectWait {
		t.Errorf("after an attempt in time the client waits %v", d)
	}
}
