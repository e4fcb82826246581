package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServerLostDuringAChange kills the NATS server while workers are loading a
// version, so that the broker that proposed it cannot even take it back, and
// starts the server again on its data. Whichever broker is asked next, it
// changes the configuration.
func TestServerLostDuringAChange(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 2, 1)
	path, until := s.slow(t, 2)
	lost := start(t, "broker", "apply", path, "--nats", s.url)
	s.awaitProposed(t)
	by := s.brokers[s.proposer(t)]
	mark := by.said.mark()
	s.nats.kill()
	by.mustSay(t, mark, "cannot withdraw the proposed configuration")
	lost.kill()
	s.file(t, filepath.Base(until), "")
	s.startServer(t)
	s.awaitWorkers(t)
	s.awaitVerdicts(t, 1)
	w := startWatch(t, dial(t, s.url))
	began := time.Now()
	for n := 3; n <= 6; n++ {
		s.apply(t, n)
	}
	t.Logf("four changes after that took %v", time.Since(began).Round(time.Millisecond))
	w.more(t, 50)
	all := w.finish()
	all.check(t, s.says)
}

// proposer is which broker has proposed what is about to become active.
func (s *spread) proposer(t testing.TB) int {
	t.Helper()
	by := s.pointer(t).Proposed.By
	for i, b := range s.brokers {
		if strings.Contains(by, b.node()) {
			return i
		}
	}
	t.Fatalf("no broker is called %s", by)
	return 0
}

// awaitVerdicts waits until all brokers judge by a version again. The bus picks a broker for each
// call at random, so awaitVerdicts waits for a streak of such verdicts.
func (s *spread) awaitVerdicts(t testing.TB, version uint64) {
	t.Helper()
	c, streak := dial(t, s.url), 0
	err := eventually("every broker judges", func() bool {
		v, err := ask(t.Context(), c, "Tool")
		streak++
		if err != nil || sightOf(v) != s.says[version] {
			streak = 0
		}
		return streak >= 24
	})
	if err != nil {
		t.Fatal(err)
	}
}
