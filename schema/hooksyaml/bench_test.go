package hooksyaml_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// fleet returns a configuration of n hooks as many teams would write it: a third of them
// global, the others for agents, without names, some with conditions.
func fleet(n int) []byte {
	var b strings.Builder
	b.WriteString("hooks:\n  PreToolUse:\n")
	for i := range n / 3 {
		fmt.Fprintf(&b, "    - matcher: \"mcp__server%d__*|Write\"\n      handler: ./policies/guard.sh\n      timeout: 5\n      fail_closed: true\n", i)
		if i%2 == 0 {
			fmt.Fprintf(&b, "      when: 'tool_input.?command.orValue(\"\").contains(\"danger-%d\")'\n", i)
		}
	}
	b.WriteString("agents:\n")
	for i := n / 3; i < n; i += 2 {
		fmt.Fprintf(&b, "  - id: team-%d-*\n    hooks:\n      PreToolUse:\n        - {handler: guards.team_%d, fail_closed: true, readonly: true}\n", i, i)
		if i+1 < n {
			b.WriteString("      PostToolUse:\n        - {type: builtin, handler: log}\n")
		}
	}
	return []byte(b.String())
}

func BenchmarkRead5000Hooks(b *testing.B) {
	for name, data := range map[string][]byte{"named": []byte(large(5000)), "fleet": fleet(5000)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				doc, err := hooksyaml.Read("hooks.yaml", data, hooksyaml.Options{})
				if err != nil || doc.Config.HookCount() != 5000 {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWrite5000Hooks(b *testing.B) {
	doc, err := hooksyaml.Read("hooks.yaml", fleet(5000), hooksyaml.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(hooksyaml.Write(&doc.Config)) == 0 {
			b.Fatal("nothing was written")
		}
	}
}
