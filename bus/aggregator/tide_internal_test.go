package aggregator

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// river is messages that come and are taken, and a tide that watches them.
type river struct {
	tide
	came       []time.Time // of each message
	all, taken atomic.Int64
}

func newRiver() *river {
	r := &river{}
	r.come = r.all.Load
	r.waits = func() bool { return r.all.Load() > r.taken.Load() }
	return r
}

// add has another message come.
func (r *river) add() {
	r.came = append(r.came, time.Now())
	r.all.Add(1)
}

// marked is how many marks there are.
func (r *river) marked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.marks)
}

// looked reports whether there ever was one.
func (r *river) looked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.marks != nil
}

// take takes the next message and returns when it came and what the tide says of that.
func (r *river) take() (truth, said time.Time) {
	n := r.taken.Add(1)
	return r.came[n-1], r.arrived(n, time.Now())
}

func TestATideKnowsWhenWhatWaitsHadCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRiver()
		r.add()
		r.add()
		r.take()
		r.begin()
		<-time.After(5 * time.Second)
		truth, said := r.take()
		if late := said.Sub(truth); late < 0 || late > tideEvery {
			t.Errorf("said %v after it came", late)
		}
		<-time.After(3 * tideEvery) // it looks twice whether anything waits
		if r.on.Load() {
			t.Error("it is looked at though nothing waits")
		}
		r.add()
		if _, said := r.take(); !said.Equal(time.Now()) {
			t.Errorf("said %v of what did not wait", said)
		}
		r.begin()
		r.end()
		r.begin()
		<-time.After(2 * tideEvery)
		if n := r.marked(); n > 0 {
			t.Errorf("%d marks after its end", n)
		}
	})
}

func TestATideNeverSaysThatSomethingWaitedLongerThanItDid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(-40, 40), 1, 300).Draw(rt, "steps")
		wrong := ""
		synctest.Test(t, func(*testing.T) { wrong = flood(steps) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// flood has messages come and be taken: a step above zero is so many that come, one
// below zero a while in milliseconds, and each step takes one message.
func flood(steps []int) (wrong string) {
	r := newRiver()
	defer r.end()
	for _, step := range steps {
		for range step {
			r.add()
		}
		if step < 0 {
			<-time.After(time.Duration(-step) * time.Millisecond)
			synctest.Wait()
		}
		if !r.waits() {
			continue
		}
		r.begin()
		truth, said := r.take()
		switch watched := r.on.Load() && time.Since(truth) >= 2*tideEvery; {
		case said.Before(truth):
			return "it says more than the truth"
		case said.After(time.Now()):
			return "it says what is to come"
		case watched && r.looked() && said.Sub(truth) > 2*tideEvery+40*time.Millisecond:
			return "it says far too little: " + said.Sub(truth).String()
		}
	}
	return ""
}

func TestATideForgetsTheOldestAndStaysTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRiver()
		for range maxMarks + 100 {
			r.add()
			r.begin()
			<-time.After(2 * tideEvery)
		}
		if n := r.marked(); n != maxMarks {
			t.Fatalf("%d marks", n)
		}
		before := time.Time{}
		for r.waits() {
			truth, said := r.take()
			if said.Before(truth) || said.Before(before) {
				t.Fatalf("message %d came at %v, and it says %v", r.taken.Load(), truth, said)
			}
			before = said
		}
		r.end()
	})
}
