package aggregator

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

// callBeats sends a heartbeat every 250 ms for each call that is still alive. Nearly all calls end
// long before the first one. One timer serves all calls, and expires a few times a second for any
// number of them.
type callBeats struct {
	// send sends a beat to a reply subject.
	send func(reply string)

	mu    sync.Mutex // guards the following fields
	timer *time.Timer
	armed bool     // the timer will go off
	all   callBeat // the ends of the list of calls, by when their next beat is due
}

// callBeat is the beat of one call, in a ring with all others.
type callBeat struct {
	reply        string
	due          time.Time
	before, next *callBeat
}

// begin starts the beats of a call that arrived at a time, until end is called.
func (b *callBeats) begin(reply string, arrived time.Time) *callBeat {
	c := &callBeat{reply: reply, due: arrived.Add(schema.BeatEvery)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer == nil {
		b.all.before, b.all.next = &b.all, &b.all
		b.timer = time.AfterFunc(schema.BeatEvery, b.beat)
		b.armed = true
	}
	if first := b.all.next; first != &b.all && c.due.Before(first.due) {
		c.insert(&b.all) // it had to wait until it was taken
		if first.due.After(time.Now()) {
			b.arm() // if not, the timer has gone off
		}
		return c
	}
	b.append(c)
	if !b.armed {
		b.arm()
	}
	return c
}

// end ends the beats of a call: none is sent from now on, but one that is on its way.
// A call that is nil has none.
func (b *callBeats) end(c *callBeat) {
	if c == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c.remove()
}

// atOnce bounds how many beats are sent before the next check of which are due.
const atOnce = 16

// beat sends the beats that are due. It does not hold the lock while it sends: if the connection
// were busy, every call would wait for the lock twice, to begin and to end.
func (b *callBeats) beat() {
	var due [atOnce]string
	for {
		some := b.due(time.Now(), due[:0])
		if len(some) == 0 {
			return
		}
		for _, reply := range some {
			b.send(reply)
		}
	}
}

// due returns the next calls that need a beat, up to the capacity of some. If it returns none, it
// sets the timer for the next call.
func (b *callBeats) due(now time.Time, some []string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(some) < cap(some) {
		c := b.all.next
		if c == &b.all || now.Before(c.due) {
			break
		}
		some = append(some, c.reply)
		c.remove()
		c.due = now.Add(schema.BeatEvery)
		b.append(c)
	}
	if len(some) > 0 {
		return some
	}
	if b.armed = b.all.next != &b.all; b.armed {
		b.arm()
	}
	return nil
}

// arm sets the timer to the next beat. The caller holds the lock, as for the following functions.
func (b *callBeats) arm() {
	b.armed = true
	b.timer.Reset(time.Until(b.all.next.due))
}

func (b *callBeats) append(c *callBeat) { c.insert(b.all.before) }

// insert puts c behind another one.
func (c *callBeat) insert(before *callBeat) {
	c.before, c.next = before, before.next
	c.before.next, c.next.before = c, c
}

func (c *callBeat) remove() { c.before.next, c.next.before = c.next, c.before }

// sendBeat sends a heartbeat of a call. A lost connection does not end the heartbeats: it may be
// back when the next one is due.
func (a *Aggregator) sendBeat(reply string) {
	_ = a.opt.Events.PublishMsg(&nats.Msg{Subject: reply, Header: nats.Header{schema.HeaderBeat: {"1"}}})
}
