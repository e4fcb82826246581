package e2e_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// TestFilesAreReloadedUnderLoad changes the file that two brokers were started
// with, one configuration after the other, and has one of them read it again
// after an operator has applied another one. What was registered stays.
func TestFilesAreReloadedUnderLoad(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 1, 2)
	own := s.file(t, "first.yaml", mark(1))
	s.brokers = append(s.brokers, startBroker(t, "--nats", s.url, "--config", own))
	s.awaitWorkers(t)
	version := s.registered(t, "other", register(`{"PreToolUse": [{"name": "their", "type": "builtin", "handler": "deny"}]}`))
	s.says[version] = promise(version, 1)
	w := startWatch(t, dial(t, s.url))
	w.more(t, 50)
	for n := 2; n < 2+changes()/4; n++ {
		s.file(t, "first.yaml", mark(n))
		version = s.awaitActive(t, version, n)
		w.floor.Store(version)
		w.more(t, callers)
	}
	last := 1 + changes()/4
	version = s.apply(t, last+1)
	w.floor.Store(version)
	s.brokers[0].must(t, syscall.SIGHUP)
	version = s.awaitActive(t, version, last)
	w.floor.Store(version)
	s.file(t, "first.yaml", "hooks: {BeforeLunch: []}")
	for _, b := range s.brokers {
		b.mustSay(t, 0, "the configuration file has faults; the active version stays")
	}
	w.more(t, 50)
	all := w.finish()
	t.Log(&all)
	all.check(t, s.says)
	if p := s.pointer(t); p.Version != version {
		t.Errorf("after a faulty file version %d is active, not %d", p.Version, version)
	}
	a, refusal := s.hooks(t, "other", &schema.HooksRequest{Action: schema.ActionList})
	if refusal != nil || len(a.Hooks) != 1 {
		t.Errorf("what was registered is %+v, %v", a, refusal)
	}
}

// awaitActive waits until every broker uses the version after before, which has
// mark n, and returns it.
func (s *spread) awaitActive(t testing.TB, before uint64, n int) uint64 {
	t.Helper()
	next := before
	if err := eventually(fmt.Sprintf("a version with mark %d", n), func() bool {
		next = s.pointer(t).Version
		return next > before
	}); err != nil {
		t.Fatal(err)
	}
	for _, b := range s.brokers {
		b.mustSay(t, 0, fmt.Sprintf(`msg="configuration active" version=%d `, next))
	}
	s.says[next] = promise(next, n)
	return next
}
