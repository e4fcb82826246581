package e2e_test

import (
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// TestStoppedInOrder takes a worker, and then one of two brokers, away in good
// order under load: nothing is lost and nothing runs twice.
func TestStoppedInOrder(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"worker", "broker"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			c := startCrew(t, goKind, true)
			victim := c.workers[0]
			if who == "broker" {
				victim = startBroker(t, "--nats", c.broker.url).process
				awaitWorkers(t, c.nc, "w0", "w1")
			}
			l := startLoad(t, dial(t, c.broker.url))
			l.more(t, 100)
			victim.must(t, syscall.SIGTERM)
			l.more(t, 200)
			if code, err := victim.wait(); err != nil || code != 0 {
				t.Errorf("it ended with %d, %v:\n%s", code, err, lastLines(victim.said.String(), 5))
			}
			s := count(l.finish())
			t.Log(s)
			s.check(t)
			for tool, kinds := range s.outcomes {
				for kind, n := range kinds {
					if kind != schema.OK {
						t.Errorf("%d hooks of %s calls ended as %s", n, tool, kind)
					}
				}
			}
			c.stop(t)
		})
	}
}
