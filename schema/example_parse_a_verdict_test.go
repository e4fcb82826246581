package schema_test

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// How do I parse a verdict?
func Example_howDoIParseAVerdict() {
	var v schema.Verdict
	err := schema.Unmarshal([]byte(`{
		"decision": "deny",
		"reason": "use the build tool",
		"executed_hooks": [{"hook": "no-shell", "decision": "deny", "outcome": "ok", "duration": "1.2ms"}],
		"injections": [{"content": "The build tool is called make.", "strategy": "tool_result"}]
	}`), &v)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Decision, "by", v.ExecutedHooks[0].Hook, "in", v.ExecutedHooks[0].Duration.Std())
	fmt.Println(v.Injections[0].Content)
	fmt.Println("does the tool run?", !schema.PreToolUse.Blocks(v.Decision))
	// Output:
	// deny by no-shell in 1.2ms
	// The build tool is called make.
	// does the tool run? false
}
