package dialect_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
)

const (
	document = "../../RUNTIMES.md"
	begin    = "<!-- what runtimes can be told: written by go test ./cmd/agentshim/internal/dialect -update -->\n"
	end      = "<!-- end -->\n"
)

// columns maps the runtimes to their names in the table. It leaves out the fabric's own form, which has all
// abilities.
func columns() [][2]string {
	return [][2]string{{"claude", "Claude Code"}, {"codex", "Codex"}, {"gemini", "Gemini CLI"}, {"cursor", "Cursor"},
		{"copilot", "Copilot"}, {"qwen", "Qwen Code"}, {"opencode", "OpenCode"}, {"agy", "`agy`"}}
}

// The table in RUNTIMES.md matches the dialects.
func TestTheTableSaysWhatRuntimesCanBeTold(t *testing.T) {
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	was, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("RUNTIMES.md has no %q and %q after it", begin, end)
	}
	want := markdown()
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(document, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, was); diff != "" {
		t.Errorf("RUNTIMES.md says otherwise (-dialects +RUNTIMES.md); run go test -update:\n%s", diff)
	}
}

func markdown() string {
	var b strings.Builder
	b.WriteString("| |")
	for _, c := range columns() {
		b.WriteString(" " + c[1] + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns())) + "\n")
	words := map[dialect.How]string{dialect.Native: "native", dialect.Emulated: "emulated", dialect.Impossible: "–"}
	for _, row := range dialect.Table() {
		b.WriteString("| " + row.Name + " |")
		for _, c := range columns() {
			b.WriteString(" " + words[row.By[c[0]]] + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestEveryRuntimeIsInTheTable(t *testing.T) {
	shown := map[string]bool{"generic": true}
	for _, c := range columns() {
		shown[c[0]] = true
	}
	for _, name := range dialect.Names() {
		if !shown[name] {
			t.Errorf("the table says nothing of %s; add it to columns", name)
		}
	}
	for _, row := range dialect.Table() {
		if row.By["generic"] != dialect.Native {
			t.Errorf("%s: the fabric's own form cannot", row.Name)
		}
	}
}

func TestAnEventIsFoundByItsSeedName(t *testing.T) {
	for runtime, want := range map[string]string{"claude": "PreToolUse", "generic": "PreToolUse", "gemini": "BeforeTool"} {
		if m, err := dialect.Find(runtimeOf(t, runtime), "BEFORE_TOOL_EXECUTION"); err != nil || m.Name != want {
			t.Errorf("%s: %+v, %v", runtime, m, err)
		}
	}
}
