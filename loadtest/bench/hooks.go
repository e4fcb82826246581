package bench

import (
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// The pools that have a hookworker of their own.
const (
	remote  = "remote"
	further = "further"
)

// hooksYAML is one configuration for all rows: the event's tool picks the
// hooks. None of them is readonly, so each waits for the one before.
func hooksYAML() string {
	var b strings.Builder
	b.WriteString("presets: []\nhooks:\n  PreToolUse:\n")
	add := func(tool string, i int, pool string) {
		fmt.Fprintf(&b, "    - {name: %s-%d, matcher: %s, type: builtin, handler: allow, pool: %s}\n", tool, i, tool, pool)
	}
	for _, pool := range []string{schema.DefaultPool, remote} {
		for _, n := range counts() {
			for i := range n {
				add(tool(pool, n), i+1, pool)
			}
		}
	}
	add(tool(further, 2), 1, remote)
	add(tool(further, 2), 2, further)
	return b.String()
}
