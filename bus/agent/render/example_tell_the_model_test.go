package render_test

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

// How do I tell the model that the fabric refused its call?
func Example_howDoITellTheModel() {
	call := &schema.Event{
		HookType: schema.PreToolUse, ToolName: "Bash", ToolUseID: "call_1", ToolInput: jsontext.Value(`{"command":"rm -rf /"}`),
	}
	verdict := &schema.Verdict{Decision: schema.Deny, Reason: "delete only below ./build"}

	m, err := render.Render(render.OpenAI, call, verdict)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the tool must not run:", m.Answered)
	for _, message := range m.Messages { // append them to the conversation
		fmt.Println(string(message))
	}
	// Output:
	// the tool must not run: true
	// {"role":"tool","tool_call_id":"call_1","content":"Error: The call was denied and did not run: delete only below ./build"}
}
