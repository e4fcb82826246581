package fabric_test

import (
	"bytes"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
)

// A point is where something may go wrong: a step of the queue or of the
// rounds, or one of those that follow.
type point string

// The points that no step names: those of a verdict that brings something, and
// those of the shim that hands it over.
const (
	verdictDecided point = "verdict.decided" // it is about to leave the broker
	verdictSent    point = "verdict.sent"    // it is about to reach the shim
	shimReceived   point = "shim.received"   // the shim has it, the agent nothing
	shimHanded     point = "shim.handed"     // the agent has it, and it is not acknowledged
	shimAcked      point = "shim.acked"      // the shim has heard that it is known
)

// A role is a failure and its victim.
type role string

// The roles. The asker is the client that waits for the step: the shim or a producer of items.
const (
	brokerDies   role = "broker dies"
	brokerCut    role = "broker cut off 3s"
	brokerLost   role = "broker cut off 40s"
	askerDies    role = "asker dies"
	askerCut     role = "asker cut off 3s"
	askerLost    role = "asker cut off 40s"
	serverStarts role = "server restarts"
)

const (
	shortly = 3 * time.Second
	// forLong is longer than leases, and than connections wait for a sign of life.
	forLong = 40 * time.Second
	// reborn is when a broker that died is started again.
	reborn = 5 * time.Second
)

// reach says that a point was reached, in a broker or elsewhere. What the cell
// says goes wrong there at the first time.
func (w *world) reach(p point, n *node) {
	w.mu.Lock()
	if p != w.cell.row.point || w.hit || w.ended || w.otherWay() {
		w.mu.Unlock()
		return
	}
	if w.passed++; w.passed <= w.cell.later {
		w.mu.Unlock()
		return
	}
	w.hit = true
	if n == nil {
		n = w.spoke
	}
	var v victim = w.turn
	if p == point(queue.StepEnqueueBegun) || p == point(queue.StepEnqueueStored) || p == point(rounds.StepStartStored) {
		v = w.tells
	}
	w.mu.Unlock()
	w.strike(n, v)
}

// otherWay reports whether it is another shim than the cell's that passes a point
// now. The caller holds the lock.
func (w *world) otherWay() bool {
	return w.turn != nil && w.cell.row.handing && w.turn.daemon != (w.cell.way == daemon)
}

func (w *world) strike(n *node, asker victim) {
	long := forLong
	switch w.cell.role {
	case brokerDies:
		w.struck(n.die(), reborn)
		w.later(reborn, func() { w.live(n.name) })
	case brokerCut, askerCut:
		long = shortly
		fallthrough
	case brokerLost, askerLost:
		var who victim = n
		if w.cell.role == askerCut || w.cell.role == askerLost {
			who = asker
		}
		who.cutOff(true)
		w.struck(true, long)
		w.later(long, func() { who.cutOff(false) })
	case askerDies:
		w.struck(asker.die(), 0)
	case serverStarts:
		w.restart()
		w.struck(true, 0)
	}
}

// struck notes what was done, and for how long.
func (w *world) struck(done bool, long time.Duration) {
	if !done {
		w.t.Errorf("at %s no process had the role %q", w.cell.row.point, w.cell.role)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.whole = time.Now().Add(long)
}

func (w *world) later(d time.Duration, do func()) {
	w.graves.Go(func() {
		<-time.After(d)
		do()
	})
}

// settled reports whether all was whole again for long enough for what is late
// to come.
func (w *world) settled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.hit {
		return w.cell.later > 0 && time.Since(w.began) > time.Minute // not passed that often
	}
	return !w.whole.IsZero() && time.Since(w.whole) > leaseOver
}

// brings reports whether a part of a stream holds a verdict that brings something.
func brings(what []byte) bool { return bytes.Contains(what, []byte(`"injections":[`)) }
