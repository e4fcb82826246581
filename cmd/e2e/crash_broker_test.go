package e2e_test

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
)

// TestKilledAndStoppedBrokers takes one of two brokers away under load.
func TestKilledAndStoppedBrokers(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(fmt.Sprint(signal), func(t *testing.T) {
			t.Parallel()
			for range rounds() {
				loseBroker(t, signal)
			}
		})
	}
}

func loseBroker(t *testing.T, signal syscall.Signal) {
	c := startCrew(t, goKind, true)
	second := startBroker(t, "--nats", c.broker.url)
	awaitWorkers(t, c.nc, "w0", "w1")
	l := startLoad(t, dial(t, c.broker.url))
	l.more(t, 100)
	at := time.Now()
	second.must(t, signal)
	l.more(t, 150)
	if signal == syscall.SIGSTOP {
		second.must(t, syscall.SIGCONT)
		l.more(t, 100)
	}
	calls := l.finish()
	s := count(calls)
	over := slices.DeleteFunc(calls, func(c called) bool { return c.began.After(at) })
	t.Logf("calls under way at the loss: %v", count(over))
	t.Logf("all: %v", s)
	// A broker that hangs keeps its place in the queue group until the server
	// gives its connection up; the second time, a call is asked of everybody.
	s.check(t)
	c.stop(t)
}

// checkUnanswered fails the test if the error of a call without a verdict is not
// [client.ErrUnanswered].
func (s *tally) checkUnanswered(t testing.TB) {
	t.Helper()
	for _, c := range s.failed {
		if !errors.Is(c.err, client.ErrUnanswered) {
			t.Errorf("a %s call failed otherwise: %v", c.tool, c.err)
		}
	}
}
