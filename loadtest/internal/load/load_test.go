package load

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

func seeded(agent uint64) *rand.Rand { return rand.New(rand.NewPCG(1, agent)) }

// moments returns all calls of the given number of agents.
func moments(c Curve, agents int) []time.Duration {
	var all []time.Duration
	for i := range agents {
		a := NewArrivals(c, agents, seeded(uint64(i)))
		for m, ok := a.Next(); ok; m, ok = a.Next() {
			all = append(all, m)
		}
	}
	slices.Sort(all)
	return all
}

func TestTheCallsFollowTheCurve(t *testing.T) {
	second := schema.Duration(time.Second)
	for name, c := range map[string]Curve{
		"a steady rate": Steady(500, 8*time.Second),
		"steps":         {{For: 4 * second, Rate: 100}, {For: 4 * second, Rate: 900}},
		"a pause":       {{For: second, Rate: 800}, {For: 2 * second}, {For: second, Rate: 800}},
	} {
		t.Run(name, func(t *testing.T) {
			all := moments(c, 40)
			if want := c.Calls(); math.Abs(float64(len(all))-want) > 5*math.Sqrt(want) {
				t.Errorf("%d calls, want about %.0f", len(all), want)
			}
			at := time.Duration(0)
			for _, s := range c {
				until := at + s.For.Std()
				got := 0
				for _, m := range all {
					if m >= at && m < until {
						got++
					}
				}
				if due := s.calls(); math.Abs(float64(got)-due) > 5*math.Sqrt(due)+40 {
					t.Errorf("%d calls from %v to %v, want about %.0f", got, at, until, due)
				}
				at = until
			}
		})
	}
}

func TestTheSameSeedIsTheSameMoments(t *testing.T) {
	c := Steady(100, 5*time.Second)
	if d := cmp.Diff(moments(c, 7), moments(c, 7)); d != "" {
		t.Error(d)
	}
}

// TestTheBeginningOfACurveIsTheCurve compares the calls of both.
func TestTheBeginningOfACurveIsTheCurve(t *testing.T) {
	c := Curve{{For: schema.Duration(10 * time.Second), Rate: 20}, {For: schema.Duration(5 * time.Second), Rate: 4}}
	for long, calls := range map[time.Duration]float64{0: 0, 5 * time.Second: 100, 10 * time.Second: 200, 12 * time.Second: 208, time.Minute: 220} {
		first := c.Until(long)
		if first.Long() != min(long, c.Long()) || math.Abs(first.Calls()-calls) > 1e-9 {
			t.Errorf("in the first %v there are %v calls in %v, want %v", long, first.Calls(), first.Long(), calls)
		}
	}
}

func TestTheRateAtAMoment(t *testing.T) {
	c := Curve{{For: schema.Duration(10 * time.Second), Rate: 100}, {For: schema.Duration(time.Second), Rate: 50}}
	for moment, want := range map[time.Duration]float64{-1: 0, 0: 100, 5 * time.Second: 100, 10 * time.Second: 50, 11 * time.Second: 0} {
		if got := c.Rate(moment); got != want {
			t.Errorf("after %v the rate is %v, want %v", moment, got, want)
		}
	}
}

func TestWhenIsTheInverseOfCalls(t *testing.T) {
	c := Curve{{For: schema.Duration(2 * time.Second), Rate: 10}, {For: schema.Duration(time.Second), Rate: 50}}
	for calls := 0.5; calls < c.Calls(); calls++ {
		m, ok := c.When(calls)
		if !ok {
			t.Fatalf("%.1f calls are never due", calls)
		}
		if got := c.Until(m).Calls(); math.Abs(got-calls) > 0.001 {
			t.Errorf("at %v, %.3f calls were due, not %.3f", m, got, calls)
		}
	}
	if m, ok := c.When(c.Calls() + 1); ok || m != c.Long() {
		t.Errorf("more calls than there are were due at %v", m)
	}
}

// asked runs calls at a rate in a bubble, and answers them with answer.
func asked(t *testing.T, most int64, c Curve, answer func(since time.Duration)) *Series {
	t.Helper()
	begin := time.Now()
	s, r := NewSchedule(most, false), NewRecorder(begin)
	for calls := 0.5; calls < c.Calls(); calls++ {
		m, _ := c.When(calls)
		s.Add(begin.Add(m), func(due time.Time, sent bool) {
			call := Call{Kind: "call", Due: due, Started: time.Now(), Unsent: !sent, Ended: due.Add(5 * time.Second)}
			if sent {
				answer(time.Since(begin))
				call.Ended = time.Now()
			}
			r.Count(call)
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), c.Long()+5*time.Second)
	defer cancel()
	s.Run(ctx)
	if left := s.Left(); left > 0 {
		t.Errorf("%d calls are left", left)
	}
	all, cut := NewSeries(), r.Cut()
	all.Take(&cut)
	return all
}

// TestAStallIsPaidByAllThatItMadeWait has a responder that sends no answer for one second
// of ten. A closed loop would see one slow call.
func TestAStallIsPaidByAllThatItMadeWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := asked(t, 10_000, Steady(200, 10*time.Second), func(since time.Duration) {
			if since > 4*time.Second && since < 5*time.Second {
				<-time.After(5*time.Second - since)
			}
			<-time.After(time.Millisecond)
		})
		all := s.Between(0, 11)
		if all.Offered < 1999 || all.Offered != all.Answered {
			t.Errorf("%d were due and %d answered", all.Offered, all.Answered)
		}
		if p50, p99, most := all.Latency.At(0.5), all.Latency.At(0.99), all.Latency.At(1); p50 > 0.002 || p99 < 0.85 || most < 0.95 {
			t.Errorf("p50 %vs, p99 %vs, at most %vs", p50, p99, most)
		}
		if in := s.Between(4, 5); in.Latency.At(0.5) < 0.45 || in.Offered < 190 {
			t.Errorf("in the stall p50 was %vs of %d", in.Latency.At(0.5), in.Offered)
		}
	})
}

func TestWhatExceedsTheBoundIsCountedAsHavingWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := asked(t, 10, Steady(100, 2*time.Second), func(since time.Duration) {
			<-time.After(2*time.Second - since)
		})
		all := s.Between(0, 3)
		if all.Offered < 199 || all.Unsent < 180 || all.Answered != 10 {
			t.Errorf("of %d calls %d were not sent and %d answered", all.Offered, all.Unsent, all.Answered)
		}
		if p50 := all.Latency.At(0.5); p50 < 4.9 {
			t.Errorf("p50 is %vs, as if those that were not sent had not waited", p50)
		}
	})
}

// TestWhatWasDueAtTheEndIsNotLeftOut ends a schedule before it starts a task.
func TestWhatWasDueAtTheEndIsNotLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s, now := NewSchedule(10, false), time.Now()
		var unsent []time.Duration
		for _, d := range []time.Duration{-time.Second, 0, time.Second} {
			s.Add(now.Add(d), func(due time.Time, sent bool) {
				if !sent {
					unsent = append(unsent, due.Sub(now))
				}
			})
		}
		s.Run(ctx)
		if want := []time.Duration{-time.Second, 0}; !slices.Equal(unsent, want) || s.Left() != 1 {
			t.Errorf("not sent were those due at %v, want %v, and %d are left", unsent, want, s.Left())
		}
	})
}

func TestATaskAddedEarlierIsDoneEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, begin := NewSchedule(10, false), time.Now()
		order := make(chan time.Duration, 2)
		note := func(due time.Time, _ bool) { order <- due.Sub(begin) }
		s.Add(begin.Add(time.Hour), note)
		go s.Run(ctx)
		synctest.Wait() // it sleeps until the next hour
		s.Add(begin.Add(time.Second), note)
		if first := <-order; first != time.Second || time.Since(begin) != time.Second {
			t.Errorf("%v was first, at %v", first, time.Since(begin))
		}
		if second := <-order; second != time.Hour || time.Since(begin) != time.Hour {
			t.Errorf("%v was second, at %v", second, time.Since(begin))
		}
		cancel()
		synctest.Wait()
	})
}

// TestThePreciseSleepStartsNothingEarly uses the real clock, which may jump.
func TestThePreciseSleepStartsNothingEarly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, begin := NewSchedule(100, true), time.Now()
	early := make(chan time.Duration, 50)
	for i := range cap(early) {
		s.Add(begin.Add(time.Duration(i)*300*time.Microsecond), func(due time.Time, _ bool) { early <- time.Until(due) })
	}
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	for range cap(early) {
		if d := <-early; d > 0 {
			t.Errorf("a task was done %v before it was due", d)
		}
	}
	cancel()
	<-done
}
