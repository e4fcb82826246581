package e2e_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A broker that applies a configuration is stopped while workers load it. The client gets an error, and the
// next change need not wait.
func TestAStoppedBrokerWithdrawsItsProposal(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 2, 2)
	w := startWatch(t, dial(t, s.url))
	path, until := s.slow(t, 2)
	asked := start(t, "broker", "apply", path, "--nats", s.url)
	s.awaitProposed(t)
	by := s.brokers[s.proposer(t)]
	by.must(t, syscall.SIGTERM)
	if code, err := by.wait(); err != nil || code != 0 {
		t.Errorf("the broker ended with %d, %v:\n%s", code, err, lastLines(by.said.String(), 5))
	}
	code, err := asked.wait()
	if err != nil || code != 1 || !strings.Contains(asked.said.String(), "this broker is stopping; nothing changed, try again") {
		t.Errorf("who asked ended with %d, %v:\n%s", code, err, asked.said)
	}
	if p := s.pointer(t); p.Version != 1 || p.Proposed.Version > 0 {
		t.Errorf("the pointer is %+v", p)
	}
	s.file(t, filepath.Base(until), "")
	w.floor.Store(s.apply(t, 3))
	w.more(t, 50)
	all := w.finish()
	t.Log(&all)
	all.check(t, s.says)
}
