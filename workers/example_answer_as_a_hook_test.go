package workers_test

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// Which answers can a hook give?
func Example_whichAnswersCanAHookGive() {
	for _, r := range []schema.Result{
		{}, // no opinion
		schema.Allowed(),
		schema.Denied("not on Friday"),
		schema.Asked("a person must agree"),
		schema.Rewritten(jsontext.Value(`{"limit":10}`)),
		schema.Injected("The build is red.", schema.ToolResult),
		schema.Retried("cite a source", schema.Append(schema.RoleSystem, "Sources are in docs/.")),
		schema.Answered("This agent is closed."),
	} {
		data, err := schema.Marshal(r)
		fmt.Println(string(data), err)
	}
	// Output:
	// {} <nil>
	// {"decision":"allow"} <nil>
	// {"decision":"deny","reason":"not on Friday"} <nil>
	// {"decision":"ask","reason":"a person must agree"} <nil>
	// {"updated_input":{"limit":10}} <nil>
	// {"injections":[{"content":"The build is red.","strategy":"tool_result"}]} <nil>
	// {"decision":"retry","reason":"cite a source","effects":[{"append_message":{"role":"system","content":"Sources are in docs/."}}]} <nil>
	// {"decision":"stop","value":"This agent is closed."} <nil>
}
