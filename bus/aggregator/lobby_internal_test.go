package aggregator

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/bustest"
)

// crowd is a crew of a size with a lobby in which everybody may wait, and what became of
// the messages that it got.
type crowd struct {
	*crew

	mu     sync.Mutex // guards what follows
	under  int        // how many are being handled
	peak   int
	order  []int // in which they were begun
	waited int   // how many were in the lobby
}

func (c *crowd) handled(e arrival) bool {
	n, _ := strconv.Atoi(string(e.msg.Data))
	c.mu.Lock()
	c.under++
	c.peak = max(c.peak, c.under)
	c.order = append(c.order, n)
	if e.beat != nil {
		c.waited++
	}
	c.mu.Unlock()
	<-time.After(time.Duration(10+n*7919%200) * time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.under--
	return true
}

// Whoever comes when, and however long each takes: all messages are handled once, those
// that come first are begun first, and never more than the crew has members.
func TestALobbyLosesNobodyAndKeepsTheOrder(t *testing.T) {
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

// visited sends one message after each of the pauses, in milliseconds; below zero there
// is none.
func visited(t *testing.T, size int, pauses []int) (wrong string) {
	c, nc := welcoming(t, size)
	for n, pause := range pauses {
		if pause > 0 {
			<-time.After(time.Duration(pause) * time.Millisecond)
		}
		if err := nc.Publish("x", []byte(strconv.Itoa(n))); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(time.Minute)
	synctest.Wait()
	c.mu.Lock()
	switch {
	case len(c.order) != len(pauses):
		wrong = strconv.Itoa(len(pauses)-len(c.order)) + " were not handled"
	case !inOrder(c.order, size):
		wrong = fmt.Sprint("they were not begun in their order: ", c.order)
	case c.peak > size:
		wrong = strconv.Itoa(c.peak) + " were handled at the same time"
	case c.lobby.open.Load() || c.tide.on.Load():
		wrong = "the lobby is open, though nobody is there"
	}
	c.mu.Unlock()
	c.leave(t)
	return wrong
}

// inOrder reports whether they are in their order, but for those that were begun at the
// same time.
func inOrder(all []int, atOnce int) bool {
	for i, n := range all {
		if n-i >= atOnce || i-n >= atOnce {
			return false
		}
	}
	return true
}

// welcoming begins a crew with a lobby in which everybody may wait.
func welcoming(t *testing.T, size int) (*crowd, *nats.Conn) {
	s := bustest.Start(t)
	nc := bustest.Connect(t, s, "crowd")
	sub, err := nc.SubscribeSync("x")
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{}
	c.crew = newCrew(t.Context(), size, func(_ *crew, e arrival) bool { return c.handled(e) }, slog.New(slog.DiscardHandler))
	c.lobby.ready = func() bool { return true }
	c.lobby.greet = func(_ *lobby, e *arrival) bool {
		e.beat, e.until = new(callBeat), e.at.Add(time.Hour)
		return true
	}
	if err := c.start(sub); err != nil {
		t.Fatal(err)
	}
	return c, nc
}

// leave drains the crew.
func (c *crowd) leave(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.drain(ctx); err != nil {
		t.Error(err)
	}
}

func TestACrewThatIsDrainedHandlesWhoWaitsInItsLobby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages = 100
		c, nc := welcoming(t, 2)
		for n := range messages {
			if err := nc.Publish("x", []byte(strconv.Itoa(n))); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(500 * time.Millisecond)
		if !c.lobby.open.Load() {
			t.Error("nobody waits in the lobby")
		}
		c.leave(t)
		if len(c.order) != messages || c.waited == 0 {
			t.Errorf("%d were handled, %d of them from the lobby", len(c.order), c.waited)
		}
	})
}
