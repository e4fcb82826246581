package dispatch_test

import (
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/dispatch"
)

// queue is a queue of which one call is done every 10 ms.
type queue struct {
	dispatch.Rush
	now     time.Time
	done    int64
	waiting int
}

const each = 10 * time.Millisecond

// pass lets time pass, in which come calls arrive for each that is done, if they may
// wait. It returns how many may not.
func (l *queue) pass(d time.Duration, come int, left time.Duration) (refused int) {
	for range d / each {
		l.now = l.now.Add(each)
		for range come {
			l.Look(l.now, l.done, l.waiting)
			if l.InTime(0, left, l.waiting) {
				l.waiting++
			} else {
				refused++
			}
		}
		if l.waiting > 0 {
			l.waiting--
			l.done++
		}
		l.Look(l.now, l.done, l.waiting)
	}
	return refused
}

func TestCallsThatHaveTimeWaitDuringABurst(t *testing.T) {
	l := &queue{now: time.Unix(1000, 0)}
	if n := l.pass(4*time.Second, 3, time.Minute); n > 0 {
		t.Errorf("%d of a burst were refused", n)
	}
	if wait := time.Duration(l.waiting) * each; wait < 7*time.Second {
		t.Errorf("the last of them waits %v", wait)
	}
	if n := l.pass(9*time.Second, 0, time.Minute); n > 0 || l.waiting > 0 {
		t.Errorf("%d wait when it is over", l.waiting)
	}
	l.pass(2*time.Second, 0, time.Minute)
	if n := l.pass(4*time.Second, 3, time.Minute); n > 0 {
		t.Errorf("%d of the next burst were refused", n)
	}
}

func TestCallsWithoutTimeDoNotWait(t *testing.T) {
	l := &queue{now: time.Unix(1000, 0)}
	l.pass(2*time.Second, 2, time.Second)
	if wait := time.Duration(l.waiting) * each; wait > 600*time.Millisecond || wait < 400*time.Millisecond {
		t.Errorf("a call with a second waits %v", wait)
	}
	if !l.InTime(0, time.Minute, l.waiting) {
		t.Error("a call with a minute cannot wait")
	}
	if l.InTime(2*time.Second, 4*time.Second, l.waiting) {
		t.Error("a call that has waited half of its time waits on")
	}
}

func TestInAnOverloadCallsDoNotWaitLong(t *testing.T) {
	l := &queue{now: time.Unix(1000, 0)}
	l.pass(30*time.Second, 2, time.Minute)
	if wait := time.Duration(l.waiting) * each; wait > 600*time.Millisecond || wait < 400*time.Millisecond {
		t.Errorf("the last one waits %v", wait)
	}
	if l.done < 2990 {
		t.Errorf("%d were done", l.done)
	}
}

func TestFewCallsWaitIfNothingIsDone(t *testing.T) {
	var r dispatch.Rush
	now := time.Unix(1000, 0)
	waiting := 0
	for range 100 {
		now = now.Add(100 * time.Millisecond)
		r.Look(now, 0, waiting)
		if r.InTime(0, time.Minute, waiting) {
			waiting++
		}
	}
	if waiting < 40 || waiting > 60 { // all in the first 5 s
		t.Errorf("%d wait", waiting)
	}
	if !r.InTime(0, time.Minute, 3) {
		t.Error("no call may wait")
	}
}
