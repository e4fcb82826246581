package bus

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A patience is how long an attempt to connect may take: least, and each time that this
// was not enough twice as long, up to [DialLimit]. Who finds another server that answers
// is not kept long by one that stands still; and where all clients of a server come back
// to it at once and each gives up before its turn has come, the server does all of the
// work for nobody, again and again, unless they give it the time that it needs.
type patience struct {
	least time.Duration
	vain  atomic.Int32 // how many attempts in a row took too long
}

// now is how long the next attempt may take.
func (p *patience) now() time.Duration {
	d := p.least
	for range p.vain.Load() {
		if d >= DialLimit {
			return DialLimit
		}
		d *= 2
	}
	return d
}

// pause is how long to wait after so many attempts at all servers. Where they took too
// long it is also up to as long as the next one may take: who comes when fewer others do
// is served sooner, and takes less from them.
func (p *patience) pause(attempts int) time.Duration {
	d := reconnectDelay(attempts)
	if p.vain.Load() > 0 {
		d += rand.N(p.now())
	}
	return d
}

// ended says that an attempt came to its end, and whether it took too long.
func (p *patience) ended(late bool) {
	if late {
		p.vain.Add(1)
		return
	}
	p.vain.Store(0)
}

// A greeting is what a client and a server say before the connection is of use.
type greeting struct {
	patience *patience
	until    time.Time // when it will have taken too long; zero: it is over
	vain     bool      // what was waited for did not come until then
}

// deadline is what takes the place of the deadline that the client sets for it.
func (g *greeting) deadline(t time.Time) time.Time {
	switch {
	case !t.IsZero():
		t = time.Now().Add(g.patience.now())
		g.until = t
	case !g.until.IsZero():
		g.patience.ended(!time.Now().Before(g.until))
		g.until = t
	}
	return t
}
