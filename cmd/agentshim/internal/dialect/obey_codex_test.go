package dialect_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// codexReads models Codex CLI 0.169.0.
func codexReads(c *dialect.Call, a dialect.Answer) outcome {
	if a.Exit == 2 && strings.TrimSpace(a.Stderr) != "" {
		o := claudeBlocked(c, a.Stderr)
		o.output, o.context = o.context, "" // after a tool, the model sees stderr
		return o
	}
	if a.Exit != 0 || codexRefusesAnswer(c.Moment.Name, a.Stdout) != nil {
		return outcome{}
	}
	all := members(a.Stdout)
	o := outcome{context: textAt(all, "hookSpecificOutput.additionalContext")}
	reason := textAt(all, "reason")
	blocks := all["decision"] == "block" && reason != ""
	switch c.Moment.Name {
	case "PreToolUse":
		return codexPermits(c, all)
	case "PermissionRequest":
		for _, reserved := range []string{"updatedInput", "updatedPermissions"} {
			if at(all, "hookSpecificOutput.decision."+reserved) != nil {
				return outcome{refused: true}
			}
		}
		if o = permitted(all, o); o.ends {
			return outcome{refused: true} // reserved as well
		}
	case "PostToolUse":
		if all["continue"] == false {
			o.output = textAt(all, "stopReason") // the run continues
		}
		if blocks {
			o.output = reason
		}
	case "UserPromptSubmit":
		o.refused = blocks || all["continue"] == false
	case "SessionStart":
		o.ends = all["continue"] == false
	case "Stop", "SubagentStop":
		if o.ends = all["continue"] == false; blocks && !o.ends {
			o.goesOn = reason
		}
	default:
		return outcome{}
	}
	return o
}

// codexPermits reads the answer about a tool call. One invalid member invalidates the whole answer.
func codexPermits(c *dialect.Call, all map[string]any) outcome {
	o := outcome{context: textAt(all, "hookSpecificOutput.additionalContext")}
	input, rewritten := at(all, "hookSpecificOutput.updatedInput").(map[string]any)
	reason := textAt(all, "hookSpecificOutput.permissionDecisionReason")
	switch at(all, "hookSpecificOutput.permissionDecision") {
	case "deny":
		if strings.TrimSpace(reason) == "" {
			return outcome{}
		}
		o.refused = true
	case "allow":
		if !rewritten {
			return outcome{}
		}
		o.input = jsonAt(all, "hookSpecificOutput.updatedInput")
		if _, ok := input["command"].(string); !ok && c.Event.ToolName == "Bash" {
			o.refused = true // the call fails
		}
	case nil:
		if rewritten || all["continue"] == false {
			return outcome{}
		}
		o.refused = all["decision"] == "block" && textAt(all, "reason") != ""
	default:
		return outcome{}
	}
	return o
}

// codexRefusesAnswer checks an answer against the strict schema of its event. An empty answer is
// valid. At an event without a schema, Codex reads no answer.
func codexRefusesAnswer(moment string, stdout []byte) error {
	if strings.TrimSpace(string(stdout)) == "" {
		return nil
	}
	all, err := codexSchemas()
	if err != nil {
		return err
	}
	resolved, ok := all[dashed(moment)+".command.output.json"]
	if !ok {
		return fmt.Errorf("%s reads no answer", moment)
	}
	var answer any
	if err := json.Unmarshal(stdout, &answer); err != nil {
		return err
	}
	return resolved.Validate(answer)
}

// codexSchemas returns the schemas by the name of their file. It reads them once.
var codexSchemas = sync.OnceValues(func() (map[string]*jsonschema.Resolved, error) {
	all := map[string]*jsonschema.Resolved{}
	paths, err := filepath.Glob(filepath.Join("testdata", "codex-schemas", "*.json"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("there are no schemas in testdata/codex-schemas: %w", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if all[filepath.Base(path)], err = s.Resolve(nil); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return all, nil
})

// dashed returns an event's name as it is in the names of the schema files: pre-tool-use.
func dashed(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Each answer to Codex is valid by Codex's own schemas.
func TestCodexTakesEveryAnswer(t *testing.T) {
	d := runtimeOf(t, "codex")
	answers := 0
	for _, m := range d.Moments() {
		for _, n := range verdicts(m.Event) {
			c := &dialect.Call{Moment: m, Event: schema.Event{HookType: m.Event, ToolName: "Bash", ToolInput: []byte(`{"command":"pwd"}`)}}
			said, _, _ := dialect.Express(m, &n.verdict)
			a, err := d.Encode(c, said)
			if err != nil {
				t.Fatal(err)
			}
			if err := codexRefusesAnswer(m.Name, a.Stdout); err != nil {
				t.Errorf("%s, %s: %v: %s", m.Name, n.name, err, a.Stdout)
			}
			if len(a.Stdout) > 0 {
				answers++
			}
		}
	}
	if answers == 0 {
		t.Error("no answer at all was held to a schema")
	}
	for name, answer := range map[string]string{
		"an unknown member":  `{"hookSpecificOutput":{"hookEventName":"PreToolUse","x":1}}`,
		"another event":      `{"hookSpecificOutput":{"hookEventName":"PostToolUse"}}`,
		"an unknown word":    `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer"}}`,
		"broken JSON":        `{"hookSpecificOutput":`,
		"a member elsewhere": `{"permissionDecision":"deny"}`,
	} {
		if codexRefusesAnswer("PreToolUse", []byte(answer)) == nil {
			t.Errorf("%s: the schemas in the test take %s", name, answer)
		}
	}
}
