package load

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// after returns a call that takes d.
func after(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func TestRunCountsWhatWasInsideTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Window{Callers: 16, Warm: schema.Duration(50 * time.Millisecond), Long: schema.Duration(200 * time.Millisecond)}
		got, err := Run(t.Context(), w, after(time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if got.Calls != 16*200 || got.PerSecond != 16000 {
			t.Errorf("16 callers of 1 ms for 200 ms made %d calls, %v per second", got.Calls, got.PerSecond)
		}
		for name, q := range map[string]schema.Duration{"p50": got.P50, "p99": got.P99} {
			if q.Std().Round(10*time.Microsecond) != time.Millisecond {
				t.Errorf("%s of calls of 1 ms is %v", name, q)
			}
		}
	})
}

func TestARateSpacesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Window{Callers: 8, Long: schema.Duration(time.Second), Rate: 400}
		got, err := Run(t.Context(), w, after(time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if got.Calls < 392 || got.Calls > 400 || got.P50.Std().Round(10*time.Microsecond) != time.Millisecond {
			t.Errorf("400 calls a second of 1 ms came to %d calls, half of them within %v", got.Calls, got.P50)
		}
		slow, err := Run(t.Context(), w, after(50*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if slow.P50.Std() < 200*time.Millisecond {
			t.Errorf("calls of 50 ms that are due every 20 ms take %v, as if they had not waited for each other", slow.P50)
		}
		if slow.Calls < 8*19 || slow.Calls > 8*20 {
			t.Errorf("8 callers of 50 ms made %d calls in a second", slow.Calls)
		}
	})
}

// TestAStallIsPaidForByWhatWasDueInIt makes one call of each caller take half a second, in
// which the normal number of calls is due.
func TestAStallIsPaidForByWhatWasDueInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		stalled := func(ctx context.Context) error {
			stall := began.Add(500 * time.Millisecond)
			if left := time.Until(stall); left > 0 {
				return after(left)(ctx)
			}
			return after(time.Millisecond)(ctx)
		}
		got, err := Run(t.Context(), Window{Callers: 4, Long: schema.Duration(time.Second), Rate: 400}, stalled)
		if err != nil {
			t.Fatal(err)
		}
		if got.Most.Std() < 490*time.Millisecond || got.P50.Std() < time.Millisecond || got.P99.Std() < 450*time.Millisecond {
			t.Errorf("calls that were due in a stall of half a second, of a second, came to %+v", got)
		}
	})
}

func TestCallsMakesEachCallOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made [1000]atomic.Int64
		got, err := Calls(t.Context(), 10, len(made), func(ctx context.Context, i int) error {
			made[i].Add(1)
			return after(time.Millisecond)(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range made {
			if n := made[i].Load(); n != 1 {
				t.Fatalf("call %d was made %d times", i, n)
			}
		}
		if got.Calls != 1000 || got.PerSecond != 10_000 || got.Most.Std().Round(10*time.Microsecond) != time.Millisecond {
			t.Errorf("10 callers of 1 ms came to %+v", got)
		}
		wrong := errors.New("wrong")
		if _, err := Calls(t.Context(), 2, 10, func(context.Context, int) error { return wrong }); !errors.Is(err, wrong) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestRunEndsAtTheFirstWrongAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong := errors.New("a deny where an allow was due")
		var calls atomic.Int64
		start := time.Now()
		_, err := Run(t.Context(), Window{Callers: 4, Long: schema.Duration(time.Hour)}, func(ctx context.Context) error {
			if calls.Add(1) == 10 {
				return wrong
			}
			return after(time.Second)(ctx)
		})
		if !errors.Is(err, wrong) {
			t.Errorf("the error is %v", err)
		}
		if past := time.Since(start); past > time.Minute {
			t.Errorf("the other callers went on for %v", past)
		}
	})
}

func TestAWindowShorterThanACallIsStretched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := Run(t.Context(), Window{Callers: 2, Long: schema.Duration(time.Millisecond)}, after(time.Second))
		if err != nil || got.Calls != 2 || got.PerSecond != 2 {
			t.Errorf("two calls of 1 s came to %+v, %v", got, err)
		}
	})
}

func TestACallHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := Run(t.Context(), Window{Callers: 1, Long: schema.Duration(time.Hour)}, after(time.Hour))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that is never answered gave %v", err)
		}
	})
}
