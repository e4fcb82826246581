package aggregator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

func TestAcknowledgementsRideInTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.HumanInput, schema.PostToolUse))
		m.put(human("x"))
		v := f.ask(with(event(schema.PostToolUse), id(2), 1, id(1)))
		if diff := cmp.Diff([]string{id(1)}, v.Acked); diff != "" || listInjections(v) == "" {
			t.Errorf("%s %+v", diff, v)
		}
		if n := len(m.recorded("ack")); n != 0 {
			t.Errorf("%q", m.recorded(""))
		}
	})
}

// TestAcknowledgementsAloneDelayNoVerdict checks that a shim repeats an acknowledgement until it is
// confirmed, and that no verdict waits for it.
func TestAcknowledgementsAloneDelayNoVerdict(t *testing.T) {
	for _, event := range []string{"PreToolUse", "PostToolUse"} {
		t.Run(event, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				f := remembering(t, m, library{}, stage(schema.HumanInput, schema.PostToolUse))
				m.slow = true
				q := with(eventOf(event), id(2), 1, id(1))
				v, after := f.send(q).verdict()
				if after > 0 || len(v.Acked) > 0 {
					t.Errorf("after %v: %+v", after, v)
				}
				synctest.Wait()
				m.mu.Lock()
				m.slow = false
				m.mu.Unlock()
				if again := f.ask(with(eventOf(event), id(3), 1, id(1))); len(again.Acked) > 0 {
					t.Errorf("the first try is still under way, and %q were confirmed", again.Acked)
				}
				<-after1m()
				if again := f.ask(with(eventOf(event), id(4), 1, id(1), id(5))); !slices.Equal(again.Acked, []string{id(1)}) {
					t.Errorf("%q were confirmed; the memory heard %q", again.Acked, m.recorded(""))
				}
			})
		})
	}
}

func TestAcknowledgementsOfABlockedCallAreWrittenToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{"no": says(schema.Denied("no"))}, hook("no", at(schema.UserPromptSubmit)), stage(schema.HumanInput, schema.UserPromptSubmit))
		m.put(human("x"))
		f.ask(with(event(schema.UserPromptSubmit), id(2), 1, id(1)))
		synctest.Wait()
		if got := m.recorded(""); !slices.Equal(got, []string{"ack a [" + id(1) + "]"}) {
			t.Errorf("%q", got)
		}
	})
}

func TestAcknowledgementsOfOneAgentAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{})
		m.slow = true
		f.ask(with(event(schema.PreToolUse), id(1000), 1, id(0)))
		synctest.Wait() // it is being written
		for i := 1; i < 50; i++ {
			f.ask(with(event(schema.PreToolUse), id(1000+i), 1, id(i)))
		}
		m.mu.Lock()
		m.slow = false
		m.mu.Unlock()
		<-after1m()
		got := m.recorded("ack")
		if len(got) != 2 || strings.Count(got[1], "0199") != 49 {
			t.Errorf("%d writes: %q", len(got), got)
		}
	})
}

func TestWhoStopsWritesWhatWasAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{})
		var all []*asking
		for i := range 20 {
			q := with(event(schema.PreToolUse), id(100+i), 1, id(i))
			q.Subject = fmt.Sprintf("hook.v1.event.agent%d.PreToolUse", i)
			all = append(all, f.send(q))
		}
		for _, a := range all {
			a.verdict()
		}
		if err := f.agg.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(m.recorded("ack")); n != 20 {
			t.Errorf("%d were written", n)
		}
	})
}
