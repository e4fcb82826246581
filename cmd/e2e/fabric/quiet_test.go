package fabric_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

// overheard subscribes to the whole bus. The function that it returns lists the subjects of the
// messages about calls since its last call, with an inbox as "reply". It leaves out beats, which
// never stop.
func (f *fabric) overheard() func() []string {
	f.t.Helper()
	var mu sync.Mutex
	var heard []string
	nc := f.connect("overhears")
	if _, err := nc.Subscribe(">", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		subject := m.Subject
		switch {
		case strings.HasPrefix(subject, "hook.v1.beat."):
			return
		case strings.HasPrefix(subject, "hook.v1.record."), strings.HasPrefix(string(m.Data), `{"stream":"hook_record"`):
			return // what is written down of many calls at once, later
		case strings.HasPrefix(subject, "_INBOX."):
			subject = "reply"
		}
		heard = append(heard, subject)
	}); err != nil {
		f.t.Fatal(err)
	}
	synctest.Wait()
	return func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		got := heard
		heard = nil
		return got
	}
}

// everywhere is a hooks.yaml with the same hooks at every event, each a line.
func everywhere(hooks ...string) string {
	var yaml strings.Builder
	yaml.WriteString("presets: []\nhooks:\n")
	for _, e := range schema.EventTypes() {
		fmt.Fprintf(&yaml, "  %s:\n", e)
		for _, h := range hooks {
			fmt.Fprintf(&yaml, "    - {%s}\n", h)
		}
	}
	return yaml.String()
}

// A call whose hooks' conditions are all false costs its question, its answer and
// its line of the feed, at every event, and none of it is a worker's.
func TestAFalseConditionCostsNoMessageAtAnyEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everywhere(
			`type: builtin, handler: x, pool: go, when: 'iteration > 1'`,
			`type: builtin, handler: y, pool: go, fail_closed: true, when: 'has(flags.strict)'`,
			`type: builtin, handler: z, pool: go, mode: shadow, when: 'event != hook_type'`,
		))
		f.serve("w", quiet)
		heard, a := f.overheard(), f.agent("agent1")
		for _, e := range schema.EventTypes() {
			a.ask(momentOf(e))
			<-time.After(100 * time.Millisecond) // less than a beat that says that the agent lives
			got := heard()
			if slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "hook.v1.run.") }) {
				t.Errorf("%s: a worker was asked: %q", e, got)
			}
			if e == schema.SessionStart || e == schema.SessionEnd {
				continue // the fabric writes down then which agents there are
			}
			slices.Sort(got)
			if want := []string{"hook.v1.event.agent1." + string(e), "hook.v1.feed.agent1", "reply"}; !slices.Equal(got, want) {
				t.Errorf("%s: %q was said; want %q", e, got, want)
			}
		}
	})
}

// A failing condition does not bypass a hook, with any policy: the hook runs and its result counts.
func TestAConditionThatFailsCountsAsTrueAtEveryEvent(t *testing.T) {
	const when = `when: 'flags.strict == 1 || tool_call.nothing == 1 || assistant_message.nothing == 1'`
	synctest.Test(t, func(t *testing.T) {
		for _, closed := range []bool{false, true} {
			f := start(t, everywhere(fmt.Sprintf(`type: builtin, handler: tells, pool: go, fail_closed: %t, %s`, closed, when)))
			f.serve("w", handlers{"tells": does(schema.Injected("asked", schema.ToolResult))})
			sent, a := f.batches(), f.agent("agent1")
			for i, e := range schema.EventTypes() {
				v := a.ask(momentOf(e))
				if len(v.Injections) != 1 || v.Injections[0].Content != "asked" || len(v.HookErrors) != 0 {
					t.Errorf("fail_closed %t, %s: it was told %+v, %q", closed, e, v.Injections, v.HookErrors)
				}
				wants(t, sent(), fmt.Sprint(i))
			}
		}
	})
}
