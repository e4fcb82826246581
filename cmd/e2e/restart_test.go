package e2e_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// TestKilledBrokerComesBack kills a broker under load and starts it again on
// the same data and address, without its configuration file.
func TestKilledBrokerComesBack(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	b := startBroker(t, "--config", goKind.config(t, dir), "--data", data)
	goKind.worker(t, b.url, "w0", dir)
	nc, c := connect(t, b.url), dial(t, b.url)
	awaitWorkers(t, nc, "w0")
	before, err := status(nc)
	if err != nil {
		t.Fatal(err)
	}
	for range rounds() {
		l := startLoad(t, c)
		l.more(t, 50)
		b.must(t, syscall.SIGKILL)
		if _, err := b.wait(); err != nil {
			t.Fatal(err)
		}
		b = startBroker(t, "--data", data, "--listen", strings.TrimPrefix(b.url, "nats://"))
		l.more(t, 100)
		awaitWorkers(t, nc, "w0")
		s := count(l.finish())
		t.Logf("killed and started again: %v", s)
		if n := len(s.failed); n > 0 {
			t.Errorf("%d calls got no verdict, the first: %v", n, s.failed[0].err)
		}
		s.checkNeverAllowed(t)
	}
	after, err := status(nc)
	if err != nil {
		t.Fatal(err)
	}
	if after.Fabric != before.Fabric || after.ConfigVersion != before.ConfigVersion || after.Hooks != before.Hooks {
		t.Errorf("before it was killed: %+v; after: %+v", before, after)
	}
}

// checkNeverAllowed fails the test if a fail-closed hook's call got through.
// Until the workers are back, their pool has no worker.
func (s *tally) checkNeverAllowed(t testing.TB) {
	t.Helper()
	for _, c := range s.wrong {
		if (c.tool == guarded || c.tool == once) && c.verdict.Decision != schema.Deny {
			t.Errorf("a %s call got %s: %+v", c.tool, c.verdict.Decision, c.verdict.ExecutedHooks)
		}
	}
	if s.outcomes[guarded][schema.OK] == 0 {
		t.Error("no guarded call was judged at all")
	}
}
