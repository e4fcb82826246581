package client_test

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// How do I find out which hooks ran, and what each of them decided?
func Example_howDoIReadAVerdict() {
	ctx, c, stop := connectToBroker(`
hooks:
  PreToolUse:
    - {name: hint, type: builtin, handler: inject_text, options: {text: "The tests take a minute."}}
    - {name: approve, type: builtin, handler: allow}
`)
	defer stop()

	v, err := c.Ask(ctx, &schema.Event{HookType: schema.PreToolUse, AgentID: "agent1", ToolName: "Bash"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("decision:", v.Decision)
	for _, h := range v.ExecutedHooks {
		fmt.Printf("hook %s: %s, %q\n", h.Hook, h.Outcome, h.Decision)
	}
	for _, in := range v.Injections {
		fmt.Printf("text of %s: %s\n", in.Hook, in.Content)
	}
	// Output:
	// decision: allow
	// hook hint: ok, ""
	// hook approve: ok, "allow"
	// text of hint: The tests take a minute.
}
