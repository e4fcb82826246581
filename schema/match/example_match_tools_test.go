package match_test

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema/match"
)

// How do I match tools by name?
func Example_howDoIMatchTools() {
	m, err := match.Compile("Write|Edit|mcp__github__*")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range []string{"Write", "write", "mcp__github__create_issue"} {
		fmt.Println(tool, m.Match(tool))
	}
	// Output:
	// Write true
	// write false
	// mcp__github__create_issue true
}
