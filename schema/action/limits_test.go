package action_test

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema/action"
)

// TestHostileScriptsAreBounded checks that the facts of scripts made to take much work are bounded, and that
// what is missing is said.
func TestHostileScriptsAreBounded(t *testing.T) {
	for name, script := range hostile() {
		a := action.Script(script, "/work")
		size := 0
		for _, c := range a.Commands {
			size += len(strings.Join(c.Args, "")) + len(c.Heredoc)
		}
		if len(a.Commands) > 1000 || len(a.Paths) > 1000 || size > 16<<20 {
			t.Errorf("%s: %d commands, %d paths, %d bytes", name, len(a.Commands), len(a.Paths), size)
		}
	}
}
