package dialect_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
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
	want := markdown(t)
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

func markdown(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| |")
	for _, c := range columns() {
		b.WriteString(" " + c[1] + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns())) + "\n")
	words := map[dialect.How]string{dialect.Native: "native", dialect.Emulated: "emulated", dialect.Impossible: "–"}
	for _, row := range capabilities() {
		b.WriteString("| " + row.name + " |")
		for _, c := range columns() {
			b.WriteString(" " + words[row.by(runtimeOf(t, c[0]))] + " |")
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
	for _, row := range capabilities() {
		if row.by(runtimeOf(t, "generic")) != dialect.Native {
			t.Errorf("%s: the fabric's own form cannot", row.name)
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

// A capability is one ability at one event.
type capability struct {
	name    string
	event   schema.EventType
	ability dialect.Ability
}

func capabilities() []capability {
	return []capability{
		{"deny a tool call", schema.PreToolUse, dialect.Deny},
		{"ask a person for approval", schema.PreToolUse, dialect.Ask},
		{"skip the runtime's own approval prompt", schema.PreToolUse, dialect.Approve},
		{"rewrite a tool's input", schema.PreToolUse, dialect.Rewrite},
		{"inject text before a tool", schema.PreToolUse, dialect.Inject},
		{"inject text after a tool", schema.PostToolUse, dialect.Inject},
		{"replace a tool's output", schema.PostToolUse, dialect.Replace},
		{"give feedback on a call that ran", schema.PostToolUse, dialect.Feedback},
		{"inject text after a failed tool", schema.ToolError, dialect.Inject},
		{"deny a prompt", schema.UserPromptSubmit, dialect.Deny},
		{"inject text with a prompt", schema.UserPromptSubmit, dialect.Inject},
		{"inject text at the start", schema.SessionStart, dialect.Inject},
		{"stop a call of the model", schema.BeforeLLMCall, dialect.Stop},
		{"keep the agent going at the end of its turn", schema.BeforeFinalResponse, dialect.Retry},
		{"end the run before a tool", schema.PreToolUse, dialect.Stop},
		{"end the run after a tool", schema.PostToolUse, dialect.Stop},
	}
}

// by returns how a runtime supports the capability. The first of several moments for one event counts.
// An ability that only a later moment has, such as an approval where the runtime is about to ask, is
// emulated.
func (c capability) by(d dialect.Dialect) dialect.How {
	event := c.event
	if _, ok := dialect.At(d, event); !ok && event == schema.ToolError {
		event = schema.PostToolUse // runtimes send it for failed calls as well
	}
	first, ok := dialect.At(d, event)
	if !ok || first.Can[c.ability] != dialect.Impossible {
		return first.Can[c.ability]
	}
	for _, m := range d.Moments() {
		later := c.ability == dialect.Approve || c.ability == dialect.Stop
		if m.Event == event && later && m.Can[c.ability] == dialect.Native {
			return dialect.Emulated
		}
	}
	return dialect.Impossible
}
