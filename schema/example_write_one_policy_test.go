package schema_test

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// How do I write one policy for the tools of all runtimes?
func Example_howDoIWriteOnePolicyForAllRuntimes() {
	for _, call := range []struct{ runtime, tool, input string }{
		{"claude", "Bash", `{"command":"make test"}`},
		{"gemini", "run_shell_command", `{"command":"make test"}`},
		{"claude", "Write", `{"file_path":"/w/a.go","content":"package a"}`},
		{"claude", "mcp__github__create_issue", `{"title":"Broken"}`},
	} {
		kind, facts := schema.ToolFacts(call.runtime, call.tool, jsontext.Value(call.input))
		fmt.Println(kind, string(facts))
	}
	// Output:
	// shell {"command":"make test"}
	// shell {"command":"make test"}
	// file.write {"paths":["/w/a.go"]}
	// mcp {"server":"github","tool":"create_issue"}
}
