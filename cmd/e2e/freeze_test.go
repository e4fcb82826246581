package e2e_test

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// A broker that stands still when a freeze comes is named, and goes by it before it
// answers another call.
func TestABrokerThatStoodStillGoesByAFreeze(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 2, 0)
	s.operate(t, 0, "freeze", "--agent", "other")
	lost := s.brokers[1]
	lost.freeze(t)
	late := s.operate(t, 1, "freeze", "--all", "--reason", "odd", "--timeout", "4s")
	for _, part := range []string{"1 of 2 brokers go by it", lost.node()} {
		if !strings.Contains(late.said.String(), part) {
			t.Errorf("it does not say %q: %s", part, late.said)
		}
	}
	lost.must(t, syscall.SIGCONT)
	if again := s.operate(t, 0, "freeze", "--all"); !strings.Contains(again.said.String(), "frozen before") || !strings.Contains(again.said.String(), "all 2 brokers go by it") {
		t.Errorf("said again: %s", again.said)
	}
	s.brokers[0].kill()
	c := dial(t, s.url)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if v, err := ask(ctx, c, "Bash"); err != nil || v.Decision != schema.Deny || !v.Frozen {
		t.Errorf("the broker that stood still says %+v, %v", v, err)
	}
}
