package redact_test

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/redact"
)

// How do I remove members that only my tools use for secrets?
func Example_howDoIRedactNamedMembers() {
	rules, err := redact.Parse([]string{"tool_input.badge", "**.pin"})
	if err != nil {
		fmt.Println(err)
		return
	}
	doc := map[string]any{"tool_input": map[string]any{"badge": "blue-heron", "door": map[string]any{"pin": "4711-x", "floor": "2"}}}
	echoes := rules.Clean(doc)
	data, err := schema.Marshal(doc)
	fmt.Println(string(data), err)
	fmt.Println(echoes.Without("the hook refused blue-heron at floor 2")) // the same secrets in another text
	// Output:
	// {"tool_input":{"badge":"[removed]","door":{"floor":"2","pin":"[removed]"}}} <nil>
	// the hook refused [removed] at floor 2
}
