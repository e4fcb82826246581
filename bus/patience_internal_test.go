package bus

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// greeted is one attempt, at a server that greets after so long or not at all (0), and
// how long it was given.
func (p *patience) greeted(t *testing.T, after time.Duration) time.Duration {
	t.Helper()
	here, there := net.Pipe()
	defer there.Close()
	g := gather(here, time.Minute)
	defer g.Close()
	g.greeting = &greeting{patience: p}
	began := time.Now()
	if err := g.SetDeadline(began.Add(p.least)); err != nil { // as the client does
		t.Error(err)
	}
	until := g.greeting.until.Sub(began)
	if after > 0 {
		time.AfterFunc(after, func() { _, _ = there.Write([]byte("INFO")) })
	}
	_, err := g.Read(make([]byte, 4))
	served := after > 0 && after < until
	if served != (err == nil) {
		t.Errorf("given %v, at a server that greets after %v: %v", until, after, err)
	}
	for range 2 { // TLS sets it, too
		if err := g.SetDeadline(time.Time{}); err != nil && served {
			t.Error(err)
		}
	}
	return until
}

func TestAServerThatIsSlowIsGivenMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := patience{least: dialTimeout}
		for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 16 * time.Second} {
			if got := p.greeted(t, 0); got != want {
				t.Errorf("attempt %d was given %v, not %v", i+1, got, want)
			}
		}
		if got := p.greeted(t, 15*time.Second); got != DialLimit {
			t.Errorf("it was given %v", got)
		}
		if got := p.greeted(t, time.Second); got != dialTimeout {
			t.Errorf("after a server was met that answers, one is given %v", got)
		}
	})
}

// Whoever stands still must not keep a client long that has another server to go to.
func TestAServerThatStandsStillIsGivenNoMoreTimeByTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := patience{least: dialTimeout}
		for range 5 {
			if got := p.greeted(t, 0); got != dialTimeout {
				t.Errorf("the one that stands still was given %v", got)
			}
			p.greeted(t, time.Millisecond) // the other one
		}
	})
}

// Those that come back to a server that is too slow for all of them spread over the time
// that it needs.
func TestAfterAnAttemptInVainTheNextOneComesLater(t *testing.T) {
	p := patience{least: dialTimeout}
	longest := func() (d time.Duration) {
		for range 1000 {
			d = max(d, p.pause(1))
		}
		return d
	}
	if d := longest(); d > 2*reconnectWait {
		t.Errorf("it waits %v after nothing was in vain", d)
	}
	for range 4 {
		p.ended(true)
		if d, most := longest(), p.now(); d < most*3/4 || d > most+2*reconnectWait {
			t.Errorf("it waits %v where an attempt may take %v", d, most)
		}
	}
	p.ended(false)
	if d := longest(); d > 2*reconnectWait {
		t.Errorf("it waits %v after an attempt that was none too many", d)
	}
}
