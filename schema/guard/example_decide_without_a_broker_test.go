package guard_test

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// How do I decide about a call while no broker answers?
func Example_howDoIDecideWithoutABroker() {
	policy, _, err := guard.Document(&schema.Config{Version: 7, Hooks: []schema.Hook{
		{Name: "limit", Event: schema.PreToolUse, Matcher: "transfer", Type: schema.Builtin, Handler: "limit", FailClosed: true},
		{Name: "hint", Event: schema.PreToolUse, Type: schema.Builtin, Handler: "hint"},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, err := guard.Compile(policy.Hooks, policy.Overrides)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range []string{"transfer", "Read"} {
		if h := rules.Guard(guard.Call{Agent: "agent1", Event: schema.PreToolUse, Tool: tool}); h != nil {
			fmt.Printf("%s: deny, because the fail-closed hook %s guards it\n", tool, h.Hook)
		} else {
			fmt.Printf("%s: continue\n", tool)
		}
	}
	// Output:
	// transfer: deny, because the fail-closed hook limit guards it
	// Read: continue
}
