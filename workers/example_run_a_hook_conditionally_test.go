package workers_test

import (
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// How do I run a hook only under a condition that `when` cannot express?
func Example_howDoIRunAHookConditionally() {
	onCall := map[string]bool{"agent2": true}
	refuse := workers.HandlerFunc(func(context.Context, *schema.Event) (schema.Result, error) {
		return schema.Denied("only agents on call may deploy"), nil
	})
	hook := workers.When(func(_ context.Context, s *schema.LoopStatus, e *schema.Event) (bool, error) {
		return s.ToolCall.Name == "deploy" && !onCall[e.AgentID], nil
	}, refuse)

	for _, agent := range []string{"agent1", "agent2"} {
		r, err := hook.Handle(context.Background(), &schema.Event{HookType: schema.PreToolUse, AgentID: agent, ToolName: "deploy"})
		fmt.Printf("%s: %q %v\n", agent, r.Decision, err)
	}
	// Output:
	// agent1: "deny" <nil>
	// agent2: "" <nil>
}
