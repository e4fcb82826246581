package hooksyaml_test

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// The faults of a file with two mistakes.
func ExampleRead() {
	_, err := hooksyaml.Read("hooks.yaml", []byte(`
hooks:
  PreToolUse:
    - handler: ./policies/shell.sh
      matcher: "mcp__.*"
      fail-closed: true
`), hooksyaml.Options{})
	fmt.Println(err)
	// Output:
	// hooks.yaml:5:22: the matcher "mcp__.*" has .* in it, which is a regular expression; matchers are globs; write "mcp__*", or [.]* for a dot and anything after it
	//     5 |       matcher: "mcp__.*"
	//       |                      ^
	// hooks.yaml:6:7: unknown key "fail-closed" of a hook; did you mean "fail_closed"?
	//     6 |       fail-closed: true
	//       |       ^
}
