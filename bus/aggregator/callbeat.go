package aggregator

import (
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// callBeats tell those who asked that their calls are still alive, every 250 ms.
// Nearly all calls are over long before that: one timer serves all of them, and
// goes off a few times a second however many there are.
type callBeats struct {
	// send sends a beat to a reply subject.
	send func(reply string)

	mu    sync.Mutex // guards what follows
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

// begin has a call that arrived then beat until end is called with it.
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
		b.arm()
		return c
	}
	b.append(c)
	if !b.armed {
		b.arm()
	}
	return c
}

// end ends the beats of a call: none is sent from now on.
func (b *callBeats) end(c *callBeat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.remove()
}

// beat sends the beats that are due. It lets go of the lock after each, so that
// calls are not held up by many of them.
func (b *callBeats) beat() {
	for b.one(time.Now()) {
	}
}

// one sends the next beat, if it is due, and reports whether it was.
func (b *callBeats) one(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.all.next
	switch {
	case c == &b.all:
		b.armed = false
		return false
	case now.Before(c.due):
		b.arm()
		return false
	}
	b.send(c.reply)
	c.remove()
	c.due = now.Add(schema.BeatEvery)
	b.append(c)
	return true
}

// arm has the timer go off when the next beat is due. The lock is held, as in
// what follows.
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
