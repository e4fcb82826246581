package schema_test

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// Which decisions can a hook make at an event?
func Example_whichDecisionsCanAHookMake() {
	for _, name := range []string{"PreToolUse", "Stop"} { // Stop is Claude Code's name of BeforeFinalResponse
		t, err := schema.ParseEventType(name)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(t, t.Decisions())
	}
	// Output:
	// PreToolUse [continue allow ask deny fail stop]
	// BeforeFinalResponse [continue retry fail stop]
}
