package aggregator

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus/dispatch"
)

// A burst is more than can be judged at once, and no more than can be judged in time.
// Whoever asks takes an aggregator for lost that says nothing, and messages that wait
// for a crew cannot be told so. So those that have waited for a while are let in: what
// is said to who sent them is that they are heard; and what would not be judged in time
// is refused at once instead of after it has waited for that.

const (
	// letInAfter is for how long a message waits before it is let in. It is soon enough
	// for a sign of life to come when it is due.
	letInAfter = 100 * time.Millisecond
	// expireEvery is how often it is looked who has waited there for too long.
	expireEvery = 100 * time.Millisecond
	// partLobby is which part of what may wait for a crew may wait in its lobby, and
	// perGuest is what one takes besides its body.
	partLobby = 2
	perGuest  = 1 << 10
)

// A lobby is where the messages of a crew wait that have come faster than they can be
// judged, in the order in which they came.
type lobby struct {
	// ready reports whether anybody may be told anything now; nil: never.
	ready func() bool
	// greet reports whether a message is to wait here.
	greet func(l *lobby, e *arrival) (stays bool)
	// open: somebody may be in there. While it is not, members of the crew need not look.
	open atomic.Bool

	mu      sync.Mutex // guards what follows, and that no member gets idle unseen while it is open
	line    []arrival
	bytes   int // what is in line takes
	most    int // and may take
	rush    dispatch.Rush
	now     time.Time // when it was last looked at
	expired time.Time // when it was last looked who has waited for too long
}

// inTime reports whether the next to come in will be judged in time, if it came then
// and has so much time left.
func (l *lobby) inTime(at time.Time, left time.Duration) bool {
	return l.rush.InTime(l.now.Sub(at), left, len(l.line))
}

// full reports whether so many bytes have no room.
func (l *lobby) full(n int) bool { return l.bytes+n+perGuest > l.most }

// guest is who has waited in the lobby for longest. If nobody has, the member of the
// crew that looked is idle from then on.
func (c *crew) guest() (e arrival, ok bool) {
	if !c.lobby.open.Load() {
		c.idle.Add(1)
		if !c.lobby.open.Load() {
			return e, false
		}
		c.idle.Add(-1) // it was opened meanwhile, perhaps because nobody was idle
	}
	l := &c.lobby
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) == 0 {
		c.idle.Add(1)
		return e, false
	}
	e = l.line[0]
	l.line[0] = arrival{}
	l.line = l.line[1:]
	l.bytes -= len(e.msg.Data) + perGuest
	return e, true
}

// gather lets in who has waited for long, and sends away who has waited for too long. It
// reports whether there is more to do.
func (c *crew) gather() (more bool) {
	l := &c.lobby
	if l.ready == nil || !l.ready() {
		return false
	}
	began := time.Now()
	pending, _, _ := c.sub.Pending() // of one that is closed nobody waits
	l.look(began, c.judged.Load(), pending)
	for _, e := range l.over(began) {
		c.handle(c, e)
	}
	if !l.open.Load() && began.Sub(c.next()) < letInAfter {
		return false
	}
	l.open.Store(true)
	for time.Since(began) < tideEvery {
		e, stays, ok := c.letIn()
		switch {
		case !ok:
			l.shut()
			return false
		case !stays:
			c.handle(c, e)
		}
	}
	return true
}

// letIn takes the next message, if it has waited for long and nobody is free to take it,
// and reports whether it stays.
func (c *crew) letIn() (e arrival, stays, ok bool) {
	l := &c.lobby
	l.mu.Lock()
	defer l.mu.Unlock()
	// While nobody is idle nobody else takes one: it is there if it is there now.
	pending, _, err := c.sub.Pending()
	if err != nil || pending == 0 || c.idle.Load() > 0 {
		return e, false, false
	}
	e.at = c.next()
	if l.now.Sub(e.at) < letInAfter {
		return e, false, false
	}
	if e.msg, err = c.receive(); err != nil {
		return e, true, c.goesOn(err)
	}
	if stays = l.greet(l, &e); stays {
		l.line = append(l.line, e)
		l.bytes += len(e.msg.Data) + perGuest
	}
	return e, stays, true
}

// next is when the message that is taken next had come, at the latest.
func (c *crew) next() time.Time { return c.tide.arrived(c.taken.Load()+1, time.Now()) }

// look notes how many calls were judged by now, and how many wait to come in.
func (l *lobby) look(now time.Time, judged int64, pending int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rush.Look(now, judged, len(l.line)+max(pending, 0))
	l.now = now
}

// over takes out who has waited for too long.
func (l *lobby) over(now time.Time) (all []arrival) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.expired) < expireEvery {
		return nil
	}
	l.expired = now
	l.line = slices.DeleteFunc(l.line, func(e arrival) bool {
		if now.Before(e.until) {
			return false
		}
		l.bytes -= len(e.msg.Data) + perGuest
		e.late = true
		all = append(all, e)
		return true
	})
	return all
}

// shut closes the lobby if nobody is in there.
func (l *lobby) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) == 0 {
		l.line = nil
		l.open.Store(false)
	}
}

// waits is how many are in there.
func (l *lobby) waits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.line)
}

// waitingGauge says how many are in these.
func waitingGauge(all ...*lobby) prometheus.Collector {
	opts := prometheus.GaugeOpts{Namespace: "hookfabric", Name: "waiting", Help: "Events that wait because more arrive than the broker can judge at once."}
	return prometheus.NewGaugeFunc(opts, func() (n float64) {
		for _, l := range all {
			n += float64(l.waits())
		}
		return n
	})
}
