package schema_test

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// How do I read the answer of a hook, also in Claude Code's form?
func Example_howDoIReadAHooksAnswer() {
	for _, answer := range []string{
		`{"decision":"deny","reason":"not on Friday"}`,
		`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not on Friday"}}`,
		`{}`,
		`"deny"`,
	} {
		r, err := schema.DecodeResult(schema.PreToolUse, []byte(answer))
		fmt.Printf("%q %q %v\n", r.Decision, r.Reason, err)
	}
	// Output:
	// "deny" "not on Friday" <nil>
	// "deny" "not on Friday" <nil>
	// "" "" <nil>
	// "" "" the answer is a string; a hook answers with one JSON object
}
