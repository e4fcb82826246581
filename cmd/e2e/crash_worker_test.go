package e2e_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

// The bounds of noticing. A quiet machine needs a fraction of them; one that
// does much else at the same time must not fail the test, and what would be
// noticed by another way than the one that is meant takes longer.
const (
	crashSeen  = 250 * time.Millisecond  // by the embedded server's news
	silentSeen = 1500 * time.Millisecond // by beats that do not come
)

// A crew is a fabric with two workers in a pool of their own.
type crew struct {
	broker  *brokerProcess
	workers [2]*process
	nc      *nats.Conn
}

// kinds are the workers that a crew may have.
type kind struct {
	name string
	// config makes the hooks of the crew's pool in a directory.
	config func(t testing.TB, dir string) string
	worker func(t testing.TB, url, name, dir string) *process
}

// goKind is Go programs that serve hooks of their own, which wait up to 100 ms.
var goKind = kind{
	name: "go",
	config: func(t testing.TB, dir string) string {
		return write(t, dir, "hooks.yaml", fmt.Sprintf(crewHooks, "builtin", "wait", "refuse"))
	},
	worker: func(t testing.TB, url, name, _ string) *process {
		return start(t, "gohooks", "-nats", url, "-name", name)
	},
}

// commandKind is hookworkers whose hooks are programs that take 50 ms and more.
var commandKind = kind{
	name: "command",
	config: func(t testing.TB, dir string) string {
		write(t, dir, "wait.sh", "#!/bin/sh\nsleep 0.05\necho '{\"decision\":\"allow\"}'\n")
		write(t, dir, "refuse.sh", "#!/bin/sh\nsleep 0.05\necho no >&2\nexit 2\n")
		return write(t, dir, "hooks.yaml", fmt.Sprintf(crewHooks, "command", "./wait.sh", "./refuse.sh"))
	},
	worker: func(t testing.TB, url, name, dir string) *process {
		return start(t, "hookworker", "--nats", url, "--name", name, "--pool", "crew", "--hooks", dir, "--http", "")
	},
}

// startCrew starts a fabric, on a NATS server of its own or on the embedded one.
func startCrew(t testing.TB, k kind, ownNATS bool) *crew {
	t.Helper()
	dir := t.TempDir()
	args := []string{"--config", k.config(t, dir)}
	if ownNATS {
		_, url := startNATS(t)
		args = append(args, "--nats", url)
	}
	c := &crew{broker: startBroker(t, args...)}
	c.nc = connect(t, c.broker.url)
	for i := range c.workers {
		c.workers[i] = k.worker(t, c.broker.url, fmt.Sprintf("w%d", i), dir)
	}
	awaitWorkers(t, c.nc, "w0", "w1")
	return c
}

// awake reports whether a broker knows the worker and receives its heartbeats.
func awake(st *schema.FabricStatus, name string) bool {
	for _, p := range st.Pools {
		for _, w := range p.Workers {
			if w.Worker == name {
				return !w.Silent
			}
		}
	}
	return false
}

// inHand is how many batches a worker has in hand.
func inHand(st *schema.FabricStatus, name string) int {
	for _, p := range st.Pools {
		for _, w := range p.Workers {
			if w.Worker == name {
				return w.InFlight
			}
		}
	}
	return 0
}

// TestKilledAndStoppedWorkers takes one of two workers away under load.
func TestKilledAndStoppedWorkers(t *testing.T) {
	for _, tc := range []struct {
		kind    kind
		ownNATS bool
		signal  syscall.Signal
		seen    time.Duration
	}{
		{goKind, false, syscall.SIGKILL, crashSeen},
		{goKind, false, syscall.SIGSTOP, silentSeen},
		{goKind, true, syscall.SIGKILL, silentSeen},
		{goKind, true, syscall.SIGSTOP, silentSeen},
		{commandKind, false, syscall.SIGKILL, crashSeen},
		{commandKind, true, syscall.SIGSTOP, silentSeen},
	} {
		bus := map[bool]string{true: "own server", false: "embedded"}[tc.ownNATS]
		t.Run(fmt.Sprintf("%s, %s, %v", tc.kind.name, bus, tc.signal), func(t *testing.T) {
			for range rounds() {
				c := startCrew(t, tc.kind, tc.ownNATS)
				loseWorker(t, c, tc.signal, tc.seen)
			}
		})
	}
}

// rounds is how often each crash is tried.
func rounds() int {
	if long() {
		return 10
	}
	return 1
}

func loseWorker(t *testing.T, c *crew, signal syscall.Signal, seen time.Duration) {
	l := startLoad(t, dial(t, c.broker.url))
	l.more(t, 100)
	// Among many calls, some run hooks that may run again. The log reports only those.
	if err := eventually("the worker has calls in hand", func() bool {
		st, err := status(c.nc)
		return err == nil && inHand(&st, "w0") >= callers/4
	}); err != nil {
		t.Fatal(err)
	}
	mark, at := c.broker.said.mark(), time.Now()
	c.workers[0].must(t, signal)
	c.broker.mustSay(t, mark, "hooks run again because their worker was lost")
	noticed := time.Since(at)
	l.more(t, 200)
	if signal == syscall.SIGSTOP {
		c.workers[0].must(t, syscall.SIGCONT)
		if err := eventually("the worker is back", func() bool {
			st, err := status(c.nc)
			return err == nil && awake(&st, "w0")
		}); err != nil {
			t.Error(err)
		}
		l.more(t, 100)
	}
	s := count(l.finish())
	t.Logf("noticed after %v; %v", noticed.Round(time.Millisecond), s)
	s.check(t)
	c.checkCounted(t, s)
	if noticed > seen {
		t.Errorf("the loss was noticed after %v, more than %v", noticed, seen)
	}
	c.stop(t)
}

// checkCounted holds the broker's own count of failures, which people are woken
// by, against the calls'. A call is counted after it was answered.
func (c *crew) checkCounted(t testing.TB, s *tally) {
	t.Helper()
	lacks := ""
	if err := eventually("all failures are counted", func() bool {
		_, metrics, err := fetch(c.broker.http + "/metrics")
		if err != nil {
			lacks = err.Error()
			return false
		}
		lacks = uncounted(metrics, s)
		return lacks == ""
	}); err != nil {
		t.Errorf("%v: %s", err, lacks)
	}
}

// uncounted says which line the metrics do not have; "": none.
func uncounted(metrics string, s *tally) string {
	for _, kind := range []schema.OutcomeKind{schema.Lost, schema.Deadline} {
		for series, want := range map[string]int{
			fmt.Sprintf(`hookfabric_fail_open_total{cause=%q,hook="loose"}`, kind):        s.outcomes[loose][kind],
			fmt.Sprintf(`hookfabric_fail_closed_total{cause=%q,hook="guard-once"}`, kind): s.outcomes[once][kind],
			fmt.Sprintf(`hookfabric_fail_open_total{cause=%q,hook="free-a"}`, kind):       0,
		} {
			if line := fmt.Sprintf("\n%s %d\n", series, want); !strings.Contains(metrics, line) {
				return line
			}
		}
	}
	return ""
}

// stop ends the crew in good order, so that a round leaves nothing behind.
func (c *crew) stop(t testing.TB) {
	t.Helper()
	for _, p := range []*process{c.workers[0], c.workers[1], c.broker.process} {
		if p.signal(syscall.SIGTERM) == nil {
			if code, err := p.wait(); err != nil || code != 0 && code != -1 {
				t.Errorf("%s ended with %d, %v:\n%s", p.name, code, err, lastLines(p.said.String(), 5))
			}
		}
	}
}
