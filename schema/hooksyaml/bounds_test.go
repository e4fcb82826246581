package hooksyaml_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// large returns a configuration of n hooks with the usual fields.
func large(n int) string {
	var b strings.Builder
	b.WriteString("hooks:\n  PreToolUse:\n")
	for i := range n {
		fmt.Fprintf(&b, "    - name: guard-%d\n      matcher: \"mcp__server%d__*|Write\"\n      handler: ./policies/guard.sh\n      args: [\"--level\", \"%d\"]\n      timeout: 5\n      fail_closed: true\n", i, i, i)
	}
	return b.String()
}

func TestBounds(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a file that is too large", strings.Repeat("#", hooksyaml.MaxFile+1), "hooks.yaml:1:1: the file has 8388609 bytes; the limit is 8388608; write several hooks as one with a broader matcher"},
		{"a file of nothing but commas", "hooks: [" + strings.Repeat(",", 3_000_000), "hooks.yaml:1:1: the file has too many values; a configuration has at most 20000 hooks"},
		{"one hook too many", "hooks:\n  PreToolUse:\n" + strings.Repeat("    - {handler: ./a.sh}\n", hooksyaml.MaxHooks+2), "hooks.yaml:20003:7: hook 20001 begins here; the limit is 20000; write several hooks as one with a broader matcher"},
		{"too long a handler", "hooks: {PreToolUse: [{handler: ./" + strings.Repeat("a", 5000) + "}]}", "hooks.yaml:1:32: handler has 5002 bytes; the limit is 4096; write less"},
		{"too long a condition", "hooks: {PreToolUse: [{handler: ./a.sh, when: " + strings.Repeat("a", 5000) + "}]}", "hooks.yaml:1:46: when has 5000 bytes; the limit is 4096; write less"},
		{"too many arguments", "hooks: {PreToolUse: [{handler: ./a.sh, args: [" + strings.Repeat("a,", 300) + "]}]}", "hooks.yaml:1:46: args has 300 items; the limit is 256; write fewer"},
		{"more hooks than that through aliases", manyByAlias(), "hooks.yaml:4:21: hook 20001 begins here; the limit is 20000; write several hooks as one with a broader matcher"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := faults(t, c.text)
			if len(fs) != 1 || fs[0].Error() != c.want {
				t.Errorf("got %d faults, first %s\nwant %s", len(fs), fs[0], c.want)
			}
		})
	}
}

// manyByAlias returns a file that declares 200 hooks and uses them for 101 agents.
func manyByAlias() string {
	var b strings.Builder
	b.WriteString("agents:\n  - id: a\n    hooks: {PreToolUse: &all [\n")
	for range 200 {
		b.WriteString("                    {handler: ./a.sh},\n")
	}
	b.WriteString("    ]}\n")
	for i := range 100 {
		fmt.Fprintf(&b, "  - {id: a%d, hooks: {PreToolUse: *all}}\n", i)
	}
	return strings.Replace(b.String(), "                    {handler: ./a.sh},\n    ]}", "                    {handler: ./a.sh}]}", 1)
}

func TestFaultsAreBounded(t *testing.T) {
	fs := faults(t, "hooks:\n  PreToolUse:\n"+strings.Repeat("    - {handler: log}\n", 1000))
	if len(fs) != 501 || fs[500].Message != "here and below are 500 more faults" {
		t.Errorf("got %d faults, the last %s", len(fs), fs[len(fs)-1])
	}
}

func TestManyFaultsOnOneLongLineAreReportedQuickly(t *testing.T) {
	fs := faults(t, "hooks: {PreToolUse: ["+strings.Repeat("{handler: ./a.sh, matcher: 'a.*', colour: red},", hooksyaml.MaxHooks)+"]}")
	if len(fs) != 501 || fs[500].Message != "here and below are 39500 more faults" || fs[0].Source != "" {
		t.Errorf("got %d faults, the last %s", len(fs), fs[len(fs)-1])
	}
}

func TestALargeFileIsRead(t *testing.T) {
	if n := len(wrote(read(t, large(hooksyaml.MaxHooks)))); n != hooksyaml.MaxHooks {
		t.Errorf("got %d hooks", n)
	}
}

func TestAUsualFileIsRead(t *testing.T) {
	if n := len(wrote(read(t, large(5000)))); n != 5000 {
		t.Errorf("got %d hooks", n)
	}
}
