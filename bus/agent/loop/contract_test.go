package loop_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/schema"
)

// fields lists the members of a status that are set, beside event and agent.
func fields(s *schema.LoopStatus) string {
	var all []string
	for _, f := range []struct {
		name string
		set  bool
	}{{"iteration", s.Iteration > 0}, {"tool_call", s.ToolCall != nil}, {"tool_result", s.ToolResult != nil},
		{"assistant_message", s.AssistantMessage != nil}, {"error", s.Error != ""}} {
		if f.set {
			all = append(all, f.name)
		}
	}
	return strings.Join(all, " ")
}

// Hooks of the program and conditions of the fabric have the members in the package's
// table, and no others.
func TestAStatusHasTheMembersOfItsEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		local, remote := map[schema.EventType]string{}, map[schema.EventType]string{}
		note := func(seen map[schema.EventType]string, s schema.LoopStatus) {
			mu.Lock()
			defer mu.Unlock()
			if before, there := seen[s.Event]; there && before != fields(&s) {
				t.Errorf("at %s: %q, then %q", s.Event, before, fields(&s))
			}
			if seen[s.Event] = fields(&s); s.Agent != "agent1" {
				t.Errorf("at %s: the agent %q", s.Event, s.Agent)
			}
		}
		f := fabric(t, func(e *schema.Event, _ *schema.Verdict) { note(remote, e.LoopStatus()) })
		o, _ := query(f)
		l := start(t, o)
		for _, at := range steered() {
			l.On(at).Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(_ context.Context, s *loop.Status) error {
				note(local, s.LoopStatus)
				return nil
			})))
		}
		if _, err := l.Run(t.Context(), "1+2?"); err != nil {
			t.Fatal(err)
		}
		want := map[schema.EventType]string{
			schema.UserPromptSubmit:    "",
			schema.BeforeLLMCall:       "iteration",
			schema.AfterLLMCall:        "iteration assistant_message",
			schema.PreToolUse:          "iteration tool_call",
			schema.PostToolUse:         "iteration tool_result",
			schema.ToolError:           "iteration tool_result error",
			schema.BeforeFinalResponse: "iteration assistant_message",
			schema.QueryEnd:            "iteration",
		}
		same(t, "what hooks of the program see", want, local)
		same(t, "what conditions of the fabric see", want, remote)
	})
}
