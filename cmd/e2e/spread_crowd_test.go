package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// crowd is how many agents register hooks at the same time.
func crowd() int {
	if long() {
		return 64
	}
	return 24
}

// TestManyAgentsRegisterAtOnce has as many agents as start with a fleet register
// hooks of their own at the same time, at both brokers: each gets what it asked
// for, and none takes away what another one registered.
func TestManyAgentsRegisterAtOnce(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 2, 2)
	w := startWatch(t, dial(t, s.url))
	w.more(t, 50)
	began := time.Now()
	answers := make(chan uint64, crowd())
	for i := range crowd() {
		go func() {
			a, refusal, err := s.request(t.Context(), fmt.Sprintf("agent-%d", i), register(fmt.Sprintf(`{"PreToolUse": [{"name": "own-%d", "type": "builtin", "handler": "deny"}]}`, i)))
			if err != nil || refusal != nil || !a.Changed {
				t.Errorf("agent %d was answered %+v, %v, %v", i, a, refusal, err)
			}
			answers <- a.Version
		}()
	}
	for range crowd() {
		version := <-answers
		s.says[version] = promise(version, 1)
	}
	took := time.Since(began)
	w.more(t, 50)
	all := w.finish()
	t.Logf("%d registrations took %v; %v", crowd(), took.Round(time.Millisecond), &all)
	all.check(t, s.says)
	for i := range crowd() {
		a, refusal := s.hooks(t, fmt.Sprintf("agent-%d", i), &schema.HooksRequest{Action: schema.ActionList})
		if refusal != nil || len(a.Hooks) != 1 {
			t.Errorf("for agent %d are registered %+v, %v", i, a.Hooks, refusal)
		}
	}
}
