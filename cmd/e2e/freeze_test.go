package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

// A broker that was suspended during a freeze is named, and applies the freeze before it answers another call.
func TestASuspendedBrokerAppliesAFreezeBeforeItAnswers(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 2, 0)
	s.operate(t, 0, "freeze", "--agent", "other")
	lost := s.brokers[1]
	lost.freeze(t)
	late := s.operate(t, 1, "freeze", "--all", "--reason", "odd", "--timeout", "4s")
	for _, part := range []string{"1 of 2 brokers apply it", lost.node()} {
		if !strings.Contains(late.said.String(), part) {
			t.Errorf("it does not say %q: %s", part, late.said)
		}
	}
	lost.must(t, syscall.SIGCONT)
	if again := s.operate(t, 0, "freeze", "--all"); !strings.Contains(again.said.String(), "already frozen") || !strings.Contains(again.said.String(), "all 2 brokers apply it") {
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

// What a broker that stood still was asked to thaw is not thawed when it wakes, if it was
// frozen again since.
func TestABrokerThatStoodStillThawsNothingOfNow(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 2, 0)
	s.operate(t, 0, "freeze", "--all", "--reason", "then")
	var list schema.FreezeAnswer
	if err := control(s.nc, schema.VerbFreeze, "", schema.FreezeRequest{}, &list); err != nil {
		t.Fatal(err)
	}
	lost := s.brokers[1]
	lost.freeze(t)
	// Each of these comes to one of the two by chance.
	const asked = 20
	inbox := s.nc.NewRespInbox()
	answers := make(chan *nats.Msg, asked)
	sub, err := s.nc.ChanSubscribe(inbox, answers)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	for range asked {
		if err := s.nc.PublishRequest("hook.v1.ctl.thaw._", inbox, fmt.Appendf(nil, `{"agents":"*","within":"1s","version":%d}`, list.Version)); err != nil {
			t.Fatal(err)
		}
	}
	codes := map[string]int{}
	answered := func() {
		t.Helper()
		select {
		case m := <-answers:
			codes[m.Header.Get(schema.HeaderServiceErrorCode)]++
		case <-time.After(patience):
			t.Fatalf("of %d requests these were answered: %v", asked, codes)
		}
	}
	for codes[""] == 0 { // until it is thawed
		answered()
	}
	s.operate(t, 1, "freeze", "--all", "--reason", "now", "--timeout", "2s")
	lost.must(t, syscall.SIGCONT)
	for n := codes[""] + codes[schema.CodeNotFound] + codes[schema.CodeConflict]; n < asked; n++ {
		answered()
	}
	if codes[""] != 1 || codes[schema.CodeConflict] == 0 || codes[""]+codes[schema.CodeConflict]+codes[schema.CodeNotFound] != asked {
		t.Errorf("%v", codes)
	}
	if got := s.operate(t, 0, "freeze", "--list").said.String(); !strings.Contains(got, "all agents") || !strings.Contains(got, "now") {
		t.Errorf("it lists: %s", got)
	}
}
