package client_test

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// How do I ask the fabric before a tool runs?
func Example_howDoIAskBeforeATool() {
	ctx, c, stop := connectToBroker(`
hooks:
  PreToolUse:
    - {type: builtin, handler: deny, matcher: "Bash", options: {reason: "use the build tool"}}
`)
	defer stop()

	for _, tool := range []string{"Read", "Bash"} {
		v, err := c.Ask(ctx, &schema.Event{
			HookType: schema.PreToolUse, AgentID: "agent1",
			ToolName: tool, ToolInput: jsontext.Value(`{}`),
		})
		switch {
		case err != nil:
			fmt.Println(tool, "is not judged, so it does not run:", err)
		case v.Decision == schema.Deny:
			fmt.Println(tool, "is refused:", v.Reason)
		default:
			fmt.Println(tool, "runs")
		}
	}
	// Output:
	// Read runs
	// Bash is refused: use the build tool
}
