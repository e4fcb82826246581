package workers_test

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// How do I rewrite a tool's input?
func Example_howDoIRewriteAToolsInput() {
	dryRun := workers.HandlerFunc(func(_ context.Context, e *schema.Event) (schema.Result, error) {
		var input map[string]any
		if err := schema.Unmarshal(e.ToolInput, &input); err != nil {
			return schema.Result{}, err
		}
		input["dry_run"] = true
		whole, err := schema.Marshal(input) // a rewrite replaces the whole input
		return schema.Rewritten(whole), err
	})

	r, err := dryRun.Handle(context.Background(), &schema.Event{
		HookType: schema.PreToolUse, ToolName: "deploy", ToolInput: jsontext.Value(`{"target":"production"}`),
	})
	fmt.Println(string(r.UpdatedInput), err)
	// Output:
	// {"dry_run":true,"target":"production"} <nil>
}
