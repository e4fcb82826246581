package client_test

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// How do I refuse a call when a hook takes too long?
func Example_howDoILimitAHooksTime() {
	ctx, c, stop := connectToBroker(`
hooks:
  PreToolUse:
    - name: slow
      type: command
      handler: sleep
      args: ["60"]
      timeout: 100ms
      fail_closed: true
`)
	defer stop()

	v, err := c.Ask(ctx, &schema.Event{HookType: schema.PreToolUse, AgentID: "agent1", ToolName: "Bash"})
	if err != nil {
		fmt.Println(err)
		return
	}
	hook := v.ExecutedHooks[0]
	fmt.Println(v.Decision, hook.Hook, hook.Outcome)
	// Output:
	// deny slow deadline
}
