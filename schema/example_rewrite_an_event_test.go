package schema_test

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// How do I apply a verdict's rewrite to a call?
func Example_howDoIApplyARewrite() {
	call := schema.Event{HookType: schema.PreToolUse, ToolName: "query", ToolInput: jsontext.Value(`{"limit":1000}`)}
	v := schema.Verdict{Decision: schema.Allow, UpdatedInput: jsontext.Value(`{"limit":10}`)}

	if rewrite := v.Rewritten(call.HookType); rewrite != nil {
		call.Apply(rewrite)
	}
	fmt.Println(string(call.ToolInput))
	// Output:
	// {"limit":10}
}
