package dialect_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// claudeReads models Claude Code 2.1.332, and Copilot CLI 1.0.102 with hooks of Claude's settings.
func claudeReads(c *dialect.Call, a dialect.Answer) outcome {
	if c.Form == "copilot" {
		return copilotReadsClaude(c, a)
	}
	all := loosely(a.Stdout)
	if a.Exit == 2 {
		return claudeBlocked(c, a.Stderr) // stdout does not count
	}
	if name, given := at(all, "hookSpecificOutput").(map[string]any); given && name["hookEventName"] != c.Moment.Name {
		return outcome{} // no verdict, with a warning
	}
	o := outcome{context: textAt(all, "hookSpecificOutput.additionalContext")}
	switch c.Moment.Name {
	case "PostToolUseFailure", "SessionStart", "SessionEnd": // it has no effect at this event
	default:
		o.ends = all["continue"] == false // the tool runs, unless something else prevents it
	}
	switch c.Moment.Name {
	case "PreToolUse":
		claudePermits(&o, all)
	case "PermissionRequest":
		return permitted(all, o)
	case "PostToolUse", "PostToolUseFailure":
		if all["decision"] == "block" {
			o.context = textAt(all, "reason") + "\n" + o.context
		}
		if out := jsonAt(all, "hookSpecificOutput.updatedToolOutput"); out != "" && c.Moment.Name == "PostToolUse" && ofShape(&c.Event, out) {
			o.output = out
		}
	case "UserPromptSubmit":
		o.refused = all["decision"] == "block" || o.ends
	case "Stop", "SubagentStop":
		if o.context = ""; all["decision"] == "block" && !o.ends {
			o.goesOn = textAt(all, "reason")
		}
	}
	return o
}

// loosely reads stdout as Claude Code does: output that is not an object, or a broken one, is plain text.
func loosely(stdout []byte) map[string]any {
	if !bytes.HasPrefix(bytes.TrimSpace(stdout), []byte("{")) {
		return nil
	}
	return members(stdout)
}

// claudeBlocked returns the outcome of exit code 2.
func claudeBlocked(c *dialect.Call, stderr string) outcome {
	switch c.Moment.Event {
	case schema.PreToolUse, schema.UserPromptSubmit:
		return outcome{refused: true}
	case schema.BeforeFinalResponse:
		return outcome{goesOn: stderr}
	}
	return outcome{context: stderr}
}

// claudePermits reads the answer about a tool call.
func claudePermits(o *outcome, all map[string]any) {
	switch at(all, "hookSpecificOutput.permissionDecision") {
	case nil:
		o.refused = all["decision"] == "block"
	case "deny":
		o.refused = true
	case "ask":
		o.asked = true
	case "allow":
		o.approved = true
	default:
		*o = outcome{} // an unknown word is no verdict
		return
	}
	if !o.refused {
		o.input = jsonAt(all, "hookSpecificOutput.updatedInput")
	}
}

// permitted reads the answer in place of a person.
func permitted(all map[string]any, o outcome) outcome {
	switch at(all, "hookSpecificOutput.decision.behavior") {
	case "allow":
		o.approved, o.input = true, jsonAt(all, "hookSpecificOutput.decision.updatedInput")
	case "deny":
		o.refused = true
		o.ends = at(all, "hookSpecificOutput.decision.interrupt") == true
	}
	return o
}

// ofShape reports whether an output has the shape of the tool's own output: all of its members, of the
// same kind.
func ofShape(e *schema.Event, output string) bool {
	var was, is any
	if json.Unmarshal(e.ToolOutput, &was) != nil || json.Unmarshal([]byte(output), &is) != nil {
		return false
	}
	if strings.HasPrefix(e.ToolName, "mcp__") {
		_, list := is.([]any)
		_, text := is.(string)
		return list || text
	}
	return likeIn(was, is)
}

func likeIn(was, is any) bool {
	old, object := was.(map[string]any)
	if !object {
		return reflect.TypeOf(was) == reflect.TypeOf(is)
	}
	now, ok := is.(map[string]any)
	for name, v := range old {
		if name == "noOutputExpected" {
			continue // optional
		}
		member, there := now[name]
		ok = ok && there && likeIn(v, member)
	}
	return ok
}

// copilotReadsClaude is Copilot with a hook of Claude's settings. Before a tool, it reads the context
// at the place that its own hooks use.
func copilotReadsClaude(c *dialect.Call, a dialect.Answer) outcome {
	all := members(a.Stdout)
	o := outcome{context: textAt(all, "additionalContext")}
	blocks := all["decision"] == "block"
	switch c.Moment.Name {
	case "PreToolUse":
		if a.Exit != 0 {
			return outcome{refused: true}
		}
		o.context = textAt(all, "hookSpecificOutput.additionalContext")
		claudePermits(&o, all)
	case "PermissionRequest":
		o.refused, o.approved = all["behavior"] == "deny" || a.Exit == 2, all["behavior"] == "allow"
		o.ends = all["interrupt"] == true
	case "PostToolUse":
		if o.output = textAt(all, "modifiedResult.textResultForLlm"); blocks {
			o = outcome{output: "Tool result blocked: " + textAt(all, "reason")}
		}
	case "UserPromptSubmit":
		if o.refused = blocks || a.Exit == 2; blocks {
			o.context = textAt(all, "reason")
		}
	case "Stop", "SubagentStop":
		if blocks {
			o.goesOn = textAt(all, "reason")
		}
	}
	return o
}

// qwenReads models Qwen Code 0.24.4.
func qwenReads(c *dialect.Call, a dialect.Answer) outcome {
	if a.Exit == 2 && strings.TrimSpace(a.Stderr) != "" {
		return claudeBlocked(c, a.Stderr)
	}
	all := loosely(a.Stdout)
	if a.Exit != 0 || all == nil {
		return outcome{}
	}
	var o outcome
	blocks := all["decision"] == "block" || all["decision"] == "deny"
	switch c.Moment.Name {
	case "PreToolUse":
		claudePermits(&o, all)
		o.input = "" // documented, but without effect
		o.refused = o.refused || all["continue"] == false
	case "PermissionRequest":
		return permitted(all, o)
	case "PostToolUse":
		o.context = textAt(all, "hookSpecificOutput.additionalContext")
		if all["continue"] == false {
			o = outcome{output: textAt(all, "stopReason")} // no other member counts, and the run continues
		}
	case "PostToolUseFailure", "SessionStart":
		o.context = textAt(all, "hookSpecificOutput.additionalContext")
	case "UserPromptSubmit":
		o.refused = blocks || all["continue"] == false
		o.context = textAt(all, "hookSpecificOutput.additionalContext")
	case "Stop", "SubagentStop":
		if blocks || all["continue"] == false {
			o.goesOn = textAt(all, "stopReason") + textAt(all, "reason") // a stop makes the agent continue
		}
	}
	return o
}

// The models match observations of the released clients.
func TestModelsKnowWhatWasSeen(t *testing.T) {
	deny := func(more string) string {
		return `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"R"` + more + `}}`
	}
	said := func(word, more string) string {
		return `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"` + word + `"` + more + `}}`
	}
	const runs, refused = false, true
	for name, c := range map[string]struct {
		answer              dialect.Answer
		claude, codex, qwen bool
	}{
		"deny":                       {dialect.Answer{Stdout: []byte(deny(""))}, refused, refused, refused},
		"nothing":                    {dialect.Answer{}, runs, runs, runs},
		"exit code 2 and a reason":   {dialect.Answer{Stderr: "R", Exit: 2}, refused, refused, refused},
		"exit code 2 and no reason":  {dialect.Answer{Exit: 2}, refused, runs, runs},
		"exit code 1":                {dialect.Answer{Stderr: "R", Exit: 1}, runs, runs, runs},
		"exit code 127":              {dialect.Answer{Stderr: "R", Exit: 127}, runs, runs, runs},
		"deny with exit code 1":      {dialect.Answer{Stdout: []byte(deny("")), Exit: 1}, refused, runs, runs},
		"broken JSON":                {dialect.Answer{Stdout: []byte(deny("")[:60])}, runs, runs, runs},
		"a plain text":               {dialect.Answer{Stdout: []byte("deny")}, runs, runs, runs},
		"an unknown member":          {dialect.Answer{Stdout: []byte(deny(`,"x":1`))}, refused, runs, refused},
		"continue false":             {dialect.Answer{Stdout: []byte(`{"continue":false,"stopReason":"R"}`)}, runs, runs, refused},
		"the older block":            {dialect.Answer{Stdout: []byte(`{"decision":"block","reason":"R"}`)}, refused, refused, refused},
		"a bad word":                 {dialect.Answer{Stdout: []byte(said("block", ""))}, runs, runs, runs},
		"allow":                      {dialect.Answer{Stdout: []byte(said("allow", ""))}, runs, runs, runs},
		"ask":                        {dialect.Answer{Stdout: []byte(said("ask", ""))}, runs, runs, runs},
		"a deny without a reason":    {dialect.Answer{Stdout: []byte(said("deny", ""))}, refused, runs, refused},
		"a deny at another event":    {dialect.Answer{Stdout: []byte(strings.Replace(deny(""), "PreToolUse", "PostToolUse", 1))}, runs, runs, refused},
		"a rewrite":                  {dialect.Answer{Stdout: []byte(said("allow", `,"updatedInput":{"command":"ls"}`))}, runs, runs, runs},
		"a rewrite without an input": {dialect.Answer{Stdout: []byte(said("allow", `,"updatedInput":{}`))}, runs, refused, runs},
	} {
		for runtime, want := range map[string]bool{"claude": c.claude, "codex": c.codex, "qwen": c.qwen} {
			m, err := dialect.Find(runtimeOf(t, runtime), "PreToolUse")
			if err != nil {
				t.Fatal(err)
			}
			call := &dialect.Call{Moment: m, Event: schema.Event{ToolName: "Bash"}}
			if o := obeys(runtime, call, c.answer); o.refused != want {
				t.Errorf("%s, %s: %+v, but refused is %t in the released client", runtime, name, o, want)
			}
		}
	}
}
