package aggregator

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// river is messages that come and are taken, and a tide that watches them.
type river struct {
	tide
	came  []time.Time // of each message
	taken int
}

func newRiver() *river {
	r := &river{}
	r.come = func() int64 { return int64(len(r.came)) }
	r.waits = func() bool { return len(r.came) > r.taken }
	return r
}

// take takes the next message and returns when it came and what the tide says of that.
func (r *river) take() (truth, said time.Time) {
	r.taken++
	return r.came[r.taken-1], r.arrived(int64(r.taken), time.Now())
}

func TestATideKnowsWhenWhatWaitsHadCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRiver()
		r.came = append(r.came, time.Now(), time.Now())
		r.take()
		r.begin()
		<-time.After(5 * time.Second)
		truth, said := r.take()
		if late := said.Sub(truth); late < 0 || late > tideEvery {
			t.Errorf("said %v after it came", late)
		}
		<-time.After(2 * tideEvery)
		if r.on.Load() {
			t.Error("it is looked at though nothing waits")
		}
		r.came = append(r.came, time.Now())
		if _, said := r.take(); !said.Equal(time.Now()) {
			t.Errorf("said %v of what did not wait", said)
		}
		r.begin()
		r.end()
		r.begin()
		<-time.After(2 * tideEvery)
		if len(r.marks) > 0 {
			t.Errorf("%v after its end", r.marks)
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
			r.came = append(r.came, time.Now())
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
		case watched && r.marks != nil && said.Sub(truth) > 2*tideEvery+40*time.Millisecond:
			return "it says far too little: " + said.Sub(truth).String()
		}
	}
	return ""
}

func TestATideForgetsTheOldestAndStaysTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRiver()
		for range maxMarks + 100 {
			r.came = append(r.came, time.Now())
			r.begin()
			<-time.After(2 * tideEvery)
		}
		if len(r.marks) != maxMarks {
			t.Fatalf("%d marks", len(r.marks))
		}
		before := time.Time{}
		for r.waits() {
			truth, said := r.take()
			if said.Before(truth) || said.Before(before) {
				t.Fatalf("message %d came at %v, and it says %v", r.taken, truth, said)
			}
			before = said
		}
		r.end()
	})
}
