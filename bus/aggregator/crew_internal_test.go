package aggregator

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
)

// crewed has a crew of a size handle messages that come all at once, and returns when all were.
func crewed(t *testing.T, size, messages int, handle func(*crew)) {
	s := bustest.Start(t)
	nc := bustest.Connect(t, s, "crew")
	sub, err := nc.SubscribeSync("x")
	if err != nil {
		t.Fatal(err)
	}
	handled := make(chan struct{}, messages)
	c := newCrew(t.Context(), size, func(c *crew, _ arrival) bool {
		handle(c)
		handled <- struct{}{}
		return true
	}, slog.New(slog.DiscardHandler))
	if err := c.start(sub); err != nil {
		t.Fatal(err)
	}
	for range messages {
		if err := nc.Publish("x", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	for range messages {
		<-handled
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.drain(ctx); err != nil {
		t.Error(err)
	}
}

func TestACrewHasNoGoroutineThatOnlyWaitsForAnotherToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, messages = 3, 200
		var peak, first atomic.Int64
		crewed(t, size, messages, func(*crew) {
			<-time.After(10 * time.Millisecond)
			n := int64(runtime.NumGoroutine())
			first.CompareAndSwap(0, n)
			if n > peak.Load() {
				peak.Store(n)
			}
		})
		if peak.Load() > first.Load()+size {
			t.Errorf("%d goroutines at first, later %d", first.Load(), peak.Load())
		}
	})
}

func TestACrewTakesNoMoreThanCanRunUnlessTheyWaitForWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, asleep := range []bool{false, true} {
			var busy atomic.Int32
			crewed(t, 4*most, 3*most, func(c *crew) {
				if asleep {
					c.wait(1)
					defer c.wait(-1)
				}
				<-time.After(time.Second)
				for n, old := c.busy.Load(), busy.Load(); n > old && !busy.CompareAndSwap(old, n); old = busy.Load() {
				}
			})
			least, atMost := int32(most), int32(most+spare)
			if asleep {
				least, atMost = 3*most, 3*most
			}
			if n := busy.Load(); n < least || n > atMost {
				t.Errorf("asleep %t: %d at once, want %d to %d", asleep, n, least, atMost)
			}
		}
	})
}
