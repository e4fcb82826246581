package match_test

import (
	"errors"
	"fmt"

	"github.com/hookfabric/hookfabric/schema/match"
)

// How do I tell a user what is wrong with a pattern?
func Example_howDoIExplainAPattern() {
	_, err := match.Compile("mcp__.*")
	if wrong, ok := errors.AsType[*match.SyntaxError](err); ok {
		fmt.Println("at byte", wrong.Offset)
		fmt.Println(wrong.Message)
		fmt.Println(wrong.Hint)
	}
	// Output:
	// at byte 5
	// has .* in it, which is a regular expression; matchers are globs
	// write "mcp__*", or [.]* for a dot and anything after it
}
