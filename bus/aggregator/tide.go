package aggregator

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// tideEvery is how often a tide is looked at while messages wait.
	tideEvery = 20 * time.Millisecond
	// maxMarks bounds how far back that is known: 40 s.
	maxMarks = 2048
)

// A tide knows for how long a message has waited at least, without a word of whoever
// sent it and without touching each message on its way in: now and then it takes down
// how many have come so far. The n-th had come by the first time at which that were n.
// It never says more than the truth, and where nothing waits it costs nothing.
type tide struct {
	// come is how many messages have come so far, never too many, and waits reports
	// whether some may wait.
	come  func() int64
	waits func() bool
	// then is done after each look while some may wait, and reports whether there is
	// more to do at once; nil: nothing is.
	then func() (more bool)

	on    atomic.Bool // it is looked at
	under sync.Mutex  // held by a look
	mu    sync.Mutex  // guards what follows
	timer *time.Timer
	marks []mark // a ring, with growing counts
	first int    // the oldest of them
	calm  bool   // the last look found that nothing waits
	ended bool
}

// A mark is how many messages had come at a time.
type mark struct {
	at   time.Time
	come int64
}

// begin has the tide looked at, until nothing waits any more.
func (t *tide) begin() {
	if t.on.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.on.Load() || t.ended:
		return
	case t.timer == nil:
		t.timer = time.AfterFunc(tideEvery, t.look)
	default:
		t.timer.Reset(tideEvery)
	}
	t.on.Store(true)
}

// end ends that for good.
func (t *tide) end() {
	t.under.Lock() // until a look that is under way is over
	defer t.under.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.timer != nil {
		t.timer.Stop()
	}
}

// look makes a mark.
func (t *tide) look() {
	t.under.Lock()
	defer t.under.Unlock()
	come := t.come()
	now := time.Now() // later than the count: who was counted had come
	if !t.goesOn(now, come) {
		return
	}
	next := tideEvery
	if t.then != nil && t.then() {
		next = 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.timer.Reset(next)
	}
}

// goesOn makes a mark while messages wait, and else forgets all of them: with the second
// look that finds so, because who took the last message may not have asked yet when it came.
func (t *tide) goesOn(now time.Time, come int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	calm := !t.waits()
	if t.ended || calm && t.calm {
		t.marks, t.first, t.calm = t.marks[:0], 0, false
		t.on.Store(false)
		return false
	}
	t.calm = calm
	t.mark(now, come)
	return true
}

// mark takes down that so many had come by then. The lock is held.
func (t *tide) mark(at time.Time, come int64) {
	n := len(t.marks)
	if n > 0 && t.marks[(t.first+n-1)%n].come >= come {
		return // an earlier one says as much
	}
	if n < maxMarks {
		t.marks = append(t.marks, mark{at, come})
		return
	}
	t.marks[t.first] = mark{at, come}
	t.first = (t.first + 1) % n
}

// arrived is by when the n-th message had come, at the latest; now, if nothing is
// known of that.
func (t *tide) arrived(n int64, now time.Time) time.Time {
	if !t.on.Load() {
		return now
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := len(t.marks)
	i := sort.Search(all, func(i int) bool { return t.marks[(t.first+i)%all].come >= n })
	if i == all {
		return now
	}
	return t.marks[(t.first+i)%all].at
}
