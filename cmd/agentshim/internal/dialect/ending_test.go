package dialect_test

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// Items that waited for an agent at the end of its turn form one continuation, in each runtime that has one: the
// reason, and each text once, in order.
func TestWhatWaitedIsOneContinuation(t *testing.T) {
	some := false
	for _, name := range dialect.Names() {
		d := runtimeOf(t, name)
		for _, m := range d.Moments() {
			if m.Event != schema.BeforeFinalResponse || m.Can[dialect.Retry] != dialect.Native {
				continue
			}
			some = true
			v := schema.Verdict{Decision: schema.Retry, Reason: "2 messages came before your turn ended; go on with them", Injections: []schema.Injection{
				{Content: "FIRST TEXT", Hook: "human_input", Source: schema.SourceHuman, Strategy: schema.ToolResult, Sequence: 1},
				{Content: "SECOND TEXT", Hook: "mid_stream_injection", Source: "ci", Strategy: schema.UserMessage, Sequence: 2},
			}}
			for _, putOff := range []bool{false, true} {
				c := &dialect.Call{Moment: m, Event: schema.Event{HookType: m.Event}}
				if putOff {
					c.Event.Labels = map[string]string{"stop_hook_active": "true"}
				}
				said, later, lost := dialect.Express(m, &v)
				a, err := d.Encode(c, said)
				if err != nil || len(later)+len(lost) > 0 {
					t.Errorf("%s, %s: %v, later %v, lost %v", name, m.Name, err, later, lost)
					continue
				}
				goesOn, written := obeys(name, c, a).goesOn, string(a.Stdout)+a.Stderr
				reason, first, second := strings.Index(goesOn, "2 messages"), strings.Index(goesOn, "FIRST TEXT"), strings.Index(goesOn, "SECOND TEXT")
				if reason < 0 || first < reason || second < first {
					t.Errorf("%s, %s: it goes on with %q", name, m.Name, goesOn)
				}
				for _, text := range []string{"2 messages", "FIRST TEXT", "SECOND TEXT"} {
					if strings.Count(written, text) != 1 {
						t.Errorf("%s, %s: %q is not there once: %s", name, m.Name, text, written)
					}
				}
			}
		}
	}
	if !some {
		t.Error("no runtime goes on")
	}
}
