package intake

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/bustest"
)

func TestMain(m *testing.M) { bustest.Main(m) }

// received is a receiver in whose queue every event may wait, with the results of the events.
type received struct {
	*receiver

	nc *nats.Conn

	mu     sync.Mutex // guards the following fields
	under  int        // events under way
	peak   int
	order  []int // of their begins
	waited int   // events that were admitted to the queue
}

func (c *received) handled(e *Arrival, took func(n int) time.Duration) {
	n, _ := strconv.Atoi(string(e.Msg.Data))
	c.mu.Lock()
	c.under++
	c.peak = max(c.peak, c.under)
	c.order = append(c.order, n)
	if e.beat != nil {
		c.waited++
	}
	c.mu.Unlock()
	<-time.After(took(n))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.under--
	e.Judged = true
}

// receiving starts a receiver that handles size events at a time.
func receiving(t *testing.T, size int, handle func(*received, *Arrival)) *received {
	s := bustest.Start(t)
	c := &received{nc: bustest.Connect(t, s, "events")}
	sub, err := c.nc.SubscribeSync("x")
	if err != nil {
		t.Fatal(err)
	}
	c.receiver = newReceiver(t.Context(), size, func(e *Arrival) { handle(c, e) }, observe.NewLog(slog.New(slog.DiscardHandler)))
	c.queue.ready = func() bool { return true }
	c.queue.decide = func(e *Arrival, _ time.Time) bool {
		e.beat, e.until = new(callBeat), e.At.Add(time.Hour)
		return true
	}
	if err := c.start(sub); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *received) publish(t *testing.T, n int) {
	if err := c.nc.Publish("x", []byte(strconv.Itoa(n))); err != nil {
		t.Fatal(err)
	}
}

// leave drains the receiver.
func (c *received) leave(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.drain(ctx); err != nil {
		t.Error(err)
	}
}

// varied returns how long an event takes: from 10 to 210 ms.
func varied(n int) time.Duration { return time.Duration(10+n*7919%200) * time.Millisecond }

// TestAReceiverLosesNoEventAndKeepsTheOrder checks that the receiver handles all events once and in
// order, and never more at a time than its limit, regardless of when they come and how long they
// take.
func TestAReceiverLosesNoEventAndKeepsTheOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 6).Draw(rt, "size")
		pauses := rapid.SliceOfN(rapid.IntRange(-30, 100), 1, 120).Draw(rt, "pauses")
		wrong := ""
		synctest.Test(t, func(t *testing.T) { wrong = visited(t, size, pauses) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// visited sends one event after each of the pauses, in milliseconds; below zero there is no pause.
func visited(t *testing.T, size int, pauses []int) (wrong string) {
	c := receiving(t, size, func(c *received, e *Arrival) { c.handled(e, varied) })
	for n, pause := range pauses {
		if pause > 0 {
			<-time.After(time.Duration(pause) * time.Millisecond)
		}
		c.publish(t, n)
	}
	<-time.After(time.Minute)
	synctest.Wait()
	c.mu.Lock()
	switch {
	case len(c.order) != len(pauses):
		wrong = strconv.Itoa(len(pauses)-len(c.order)) + " were not handled"
	case !inOrder(c.order, 2*size-1):
		wrong = fmt.Sprint("they were not begun in their order: ", c.order)
	case c.peak > size:
		wrong = strconv.Itoa(c.peak) + " were handled at the same time"
	}
	c.mu.Unlock()
	c.queue.mu.Lock()
	if c.queue.watched || c.queue.waiting() > 0 || c.queue.arrived.bytes+c.queue.admitted.bytes > 0 {
		wrong = "the queue is watched, though no event waits"
	}
	c.queue.mu.Unlock()
	c.leave(t)
	return wrong
}

// inOrder reports whether events are in their order, except those that were received or begun at the
// same time.
func inOrder(all []int, atOnce int) bool {
	for i, n := range all {
		if n-i >= atOnce || i-n >= atOnce {
			return false
		}
	}
	return true
}

func TestAReceiverThatIsDrainedHandlesTheEventsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 100
		c := receiving(t, 2, func(c *received, e *Arrival) { c.handled(e, varied) })
		for n := range events {
			c.publish(t, n)
		}
		<-time.After(500 * time.Millisecond)
		c.queue.mu.Lock()
		if c.queue.waiting() == 0 {
			t.Error("no event waits")
		}
		c.queue.mu.Unlock()
		c.leave(t)
		if len(c.order) != events || c.waited == 0 {
			t.Errorf("%d were handled, %d of them had been admitted", len(c.order), c.waited)
		}
	})
}

// TestAnEventIsStampedWhenItComes checks that an event has its time of receipt, which decides
// whether it is stale or overdue. An event that waited must not look like a new one.
func TestAnEventIsStampedWhenItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Int64
		came := make([]time.Time, 50)
		c := receiving(t, 1, func(_ *received, e *Arrival) {
			n, _ := strconv.Atoi(string(e.Msg.Data))
			if !e.At.Equal(came[n]) {
				late.Add(1)
			}
			<-time.After(100 * time.Millisecond)
		})
		for n := range came {
			came[n] = time.Now()
			c.publish(t, n)
			synctest.Wait()
			<-time.After(7 * time.Millisecond)
		}
		<-time.After(time.Minute)
		if n := late.Load(); n > 0 {
			t.Errorf("%d events have another time than that at which they came", n)
		}
		c.leave(t)
	})
}

// TestAFullQueueDropsEvents checks that events beyond the limit are dropped, so that a flood does
// not take all memory, and that the receiver continues.
func TestAFullQueueDropsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const fit = 10
		c := receiving(t, 1, func(c *received, e *Arrival) { c.handled(e, func(int) time.Duration { return time.Second }) })
		c.queue.maxBytes = fit * (arrivalSize + 2)
		for n := range 2 * fit {
			c.publish(t, 10+n)
			synctest.Wait()
		}
		<-time.After(time.Minute)
		c.publish(t, 99)
		<-time.After(time.Minute)
		c.mu.Lock()
		if n := len(c.order); n != fit+2 || c.order[n-1] != 99 {
			t.Errorf("%d events were handled, the last is %d", n, c.order[n-1])
		}
		c.mu.Unlock()
		c.leave(t)
	})
}

// TestEventsThatWaitHaveNoGoroutine checks that waiting events have no goroutine each, which would
// take more memory than the limit of the queue allows.
func TestEventsThatWaitHaveNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, events = 3, 200
		var peak, first atomic.Int64
		c := receiving(t, size, func(c *received, e *Arrival) {
			c.handled(e, func(int) time.Duration { return 10 * time.Millisecond })
			n := int64(runtime.NumGoroutine())
			first.CompareAndSwap(0, n)
			peak.Store(max(peak.Load(), n))
		})
		for n := range events {
			c.publish(t, n)
		}
		<-time.After(time.Minute)
		if peak.Load() > first.Load()+size {
			t.Errorf("%d goroutines at first, later %d", first.Load(), peak.Load())
		}
		c.leave(t)
	})
}

// TestAReceiverBeginsNoMoreThanCanRunUnlessTheyWaitForWorkers checks the limit on calls that need a
// processor: more would only slow each other down. Calls that wait for workers do not count.
func TestAReceiverBeginsNoMoreThanCanRunUnlessTheyWaitForWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, asleep := range []bool{false, true} {
			c := receiving(t, 4*maxAwake, func(c *received, e *Arrival) {
				if asleep {
					c.waiting(1)
					defer c.waiting(-1)
				}
				c.handled(e, func(int) time.Duration { return time.Second })
			})
			for n := range 3 * maxAwake {
				c.publish(t, n)
			}
			<-time.After(time.Minute)
			want := maxAwake
			if asleep {
				want = 3 * maxAwake
			}
			c.mu.Lock()
			if c.peak != want || len(c.order) != 3*maxAwake {
				t.Errorf("asleep %t: %d at the same time, want %d; %d were handled", asleep, c.peak, want, len(c.order))
			}
			c.mu.Unlock()
			c.leave(t)
		}
	})
}
