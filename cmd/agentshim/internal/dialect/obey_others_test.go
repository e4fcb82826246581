package dialect_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// geminiReads models Gemini CLI 0.61.0.
func geminiReads(c *dialect.Call, a dialect.Answer) outcome {
	all := loosely(a.Stdout)
	said := strings.TrimSpace(string(a.Stdout) + a.Stderr)
	denies, reason := all["decision"] == "deny" || all["decision"] == "block", textAt(all, "reason")
	if all == nil && a.Exit >= 2 && said != "" {
		denies, reason = true, said // also if the program is missing
	}
	specific, _ := all["hookSpecificOutput"].(map[string]any)
	if specific["hookEventName"] != c.Moment.Name {
		specific = nil
	}
	o := outcome{ends: all["continue"] == false}
	context := textAt(specific, "additionalContext")
	switch c.Moment.Name {
	case "BeforeTool":
		// An ask without a person hangs, and an injection is not delivered.
		o.refused = denies || o.ends
		o.asked = all["decision"] == "ask"
		if !o.refused {
			o.input = jsonAt(specific, "tool_input") // the reason replaces the whole output
		}
	case "AfterTool":
		if o.context = context; denies {
			o.output, o.context = reason, ""
		}
	case "BeforeAgent":
		o.refused, o.context = denies, context
	case "AfterAgent":
		if denies && !o.ends {
			o.goesOn = reason
		}
	case "BeforeModel", "AfterModel":
		before := c.Moment.Name == "BeforeModel"
		o.ends = o.ends || denies && before // after the call, a deny does not prevent the message's tool calls
		if o.output = geminiMessage(specific); before && !denies {
			o.output = "" // the model is called
		}
	case "SessionStart":
		o.context = context
	}
	return o
}

// geminiMessage returns the message in place of the model's.
func geminiMessage(specific map[string]any) string {
	list, _ := at(specific, "llm_response.candidates").([]any)
	if len(list) == 0 {
		return ""
	}
	first, _ := list[0].(map[string]any)
	if first["finishReason"] == nil {
		return ""
	}
	return jsonAt(first, "content.parts")
}

// copilotReads models Copilot CLI 1.0.102. It ignores members of the other form.
func copilotReads(c *dialect.Call, a dialect.Answer) outcome {
	all := loosely(a.Stdout)
	pascal := c.Moment.Name != strings.ToLower(c.Moment.Name[:1])+c.Moment.Name[1:]
	o := outcome{context: textAt(all, "additionalContext")}
	if pascal && c.Moment.Event == schema.PreToolUse {
		o.context = textAt(all, "hookSpecificOutput.additionalContext")
	}
	reason := textAt(all, "reason")
	blocks := all["decision"] == "block" && reason != ""
	switch strings.ToLower(c.Moment.Name) {
	case "pretooluse":
		if a.Exit != 0 {
			return outcome{refused: true}
		}
		if pascal {
			claudePermits(&o, all)
			return o
		}
		o.refused, o.asked, o.approved = all["permissionDecision"] == "deny", all["permissionDecision"] == "ask", all["permissionDecision"] == "allow"
		if !o.refused {
			o.input = jsonAt(all, "modifiedArgs")
		}
	case "permissionrequest":
		o = outcome{refused: all["behavior"] == "deny", approved: all["behavior"] == "allow", ends: all["interrupt"] == true}
	case "posttooluse":
		o.output = textAt(all, "modifiedResult.textResultForLlm")
		if blocks {
			o.output, o.context = "Tool result blocked: "+reason, ""
		}
	case "agentstop", "subagentstop", "stop":
		if o.context = ""; blocks {
			o.goesOn = reason
		}
	case "userpromptsubmitted", "userpromptsubmit":
		o.refused = blocks
	case "sessionstart":
	default:
		return outcome{}
	}
	return o
}

// cursorReads models Cursor as documented, with failClosed hooks. An empty answer is a failure then, and so is
// one that is not JSON.
func cursorReads(c *dialect.Call, a dialect.Answer) outcome {
	all := members(a.Stdout)
	var o outcome
	failed := a.Exit != 0 || all == nil
	switch c.Moment.Name {
	case "preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile":
		o.refused = failed || all["permission"] == "deny"
		o.asked = all["permission"] == "ask"
		if c.Moment.Name == "preToolUse" && c.Event.ToolName != "Write" && !o.refused {
			o.input = jsonAt(all, "updated_input")
		}
	case "beforeSubmitPrompt":
		o.refused = failed || all["continue"] != true
	case "postToolUse":
		if o.context = textAt(all, "additional_context"); strings.HasPrefix(c.Event.ToolName, "MCP:") {
			o.output = jsonAt(all, "updated_mcp_tool_output")
		}
	case "sessionStart":
		o.context = textAt(all, "additional_context")
	case "stop", "subagentStop":
		o.goesOn = textAt(all, "followup_message")
	}
	return o
}

// opencodeReads models agentshim's plugin in OpenCode 1.18.33.
func opencodeReads(c *dialect.Call, a dialect.Answer) outcome {
	all := members(a.Stdout)
	works := a.Exit == 0 && all["decision"] == "allow"
	var o outcome
	switch c.Moment.Name {
	case "tool.execute.before":
		if o.refused = !works; works {
			o.input = jsonAt(all, "args")
		}
	case "tool.execute.after":
		o.output, o.context = jsonAt(all, "output"), textAt(all, "append")
	case "chat.message":
		if o.refused, o.context = !works, textAt(all, "append"); o.refused {
			o.context = textAt(all, "reason") // the user sees it
		}
	}
	return o
}

// agyReads models the Antigravity CLI as third parties observed it.
func agyReads(c *dialect.Call, a dialect.Answer) outcome {
	all := members(a.Stdout)
	var o outcome
	switch c.Moment.Name {
	case "PreToolUse":
		o.asked = a.Exit == 0 && (all["decision"] == "ask" || all["decision"] == "force_ask")
		o.refused = !o.asked && (a.Exit != 0 || all["decision"] != "allow") // {} and an empty answer, too
	case "PreInvocation":
		steps, _ := all["injectSteps"].([]any)
		for _, step := range steps {
			one, _ := step.(map[string]any)
			o.context += textAt(one, "ephemeralMessage") + textAt(one, "userMessage")
		}
	case "Stop":
		if all["decision"] == "block" {
			o.goesOn = textAt(all, "reason")
		}
	}
	return o
}

// The models match observations of the released clients, or third-party reports about clients that could not be run.
func TestModelsOfTheOthersKnowWhatWasSeen(t *testing.T) {
	const runs, refused = false, true
	said := func(s string) dialect.Answer { return dialect.Answer{Stdout: []byte(s)} }
	claudes := `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"R"}}`
	flat := `{"permissionDecision":"deny","permissionDecisionReason":"R"}`
	for name, c := range map[string]struct {
		runtime, moment string
		answer          dialect.Answer
		want            bool
	}{
		"Gemini, deny":                           {"gemini", "BeforeTool", said(`{"decision":"deny","reason":"R"}`), refused},
		"Gemini, deny with exit code 1":          {"gemini", "BeforeTool", dialect.Answer{Stdout: []byte(`{"decision":"deny","reason":"R"}`), Exit: 1}, refused},
		"Gemini, in Claude's words":              {"gemini", "BeforeTool", said(claudes), runs},
		"Gemini, exit code 2 and a text":         {"gemini", "BeforeTool", dialect.Answer{Stderr: "R", Exit: 2}, refused},
		"Gemini, exit code 2 and none":           {"gemini", "BeforeTool", dialect.Answer{Exit: 2}, runs},
		"Gemini, exit code 1 and a text":         {"gemini", "BeforeTool", dialect.Answer{Stderr: "R", Exit: 1}, runs},
		"Gemini, a missing program":              {"gemini", "BeforeTool", dialect.Answer{Stderr: "not found", Exit: 127}, refused},
		"Gemini, broken JSON":                    {"gemini", "BeforeTool", said(`{"decision":"deny","rea`), runs},
		"Gemini, a bad word":                     {"gemini", "BeforeTool", said(`{"decision":"no","reason":"R"}`), runs},
		"Gemini, continue false":                 {"gemini", "BeforeTool", said(`{"continue":false,"stopReason":"R"}`), refused},
		"Copilot, deny":                          {"copilot", "preToolUse", said(flat), refused},
		"Copilot, deny with exit code 1":         {"copilot", "preToolUse", dialect.Answer{Stdout: []byte(flat), Exit: 1}, refused},
		"Copilot, in Claude's words":             {"copilot", "preToolUse", said(claudes), runs},
		"Copilot, in Claude's words, PascalCase": {"copilot", "PreToolUse", said(claudes), refused},
		"Copilot, exit code 2":                   {"copilot", "preToolUse", dialect.Answer{Exit: 2}, refused},
		"Copilot, broken JSON":                   {"copilot", "preToolUse", said(`{"permissionDecision":"den`), runs},
		"Copilot, permission":                    {"copilot", "permissionRequest", said(`{"behavior":"deny","message":"R"}`), refused},
		"Cursor, deny":                           {"cursor", "preToolUse", said(`{"permission":"deny","user_message":"R"}`), refused},
		"Cursor, allow":                          {"cursor", "preToolUse", said(`{"permission":"allow"}`), runs},
		"Cursor, nothing":                        {"cursor", "preToolUse", said(``), refused},
		"Cursor, in Claude's words":              {"cursor", "preToolUse", said(claudes), runs},
		"Cursor, exit code 2":                    {"cursor", "preToolUse", dialect.Answer{Stdout: []byte("R"), Exit: 2}, refused},
		"Cursor, a prompt":                       {"cursor", "beforeSubmitPrompt", said(`{"continue":false}`), refused},
		"agy, nothing":                           {"agy", "PreToolUse", said(``), refused},
		"agy, an empty object":                   {"agy", "PreToolUse", said(`{}`), refused},
		"agy, allow":                             {"agy", "PreToolUse", said(`{"decision":"allow"}`), runs},
		"OpenCode, nothing":                      {"opencode", "tool.execute.before", said(``), refused},
	} {
		m, err := dialect.Find(runtimeOf(t, c.runtime), c.moment)
		if err != nil {
			t.Fatal(err)
		}
		if o := obeys(c.runtime, &dialect.Call{Moment: m, Event: schema.Event{ToolName: "Bash"}}, c.answer); o.refused != c.want {
			t.Errorf("%s: %+v, but refused is %t", name, o, c.want)
		}
	}
}

// Each answer is one JSON object or empty. It is empty only where that means no opinion.
func TestAnswersOfTheOthersAreWhole(t *testing.T) {
	for _, name := range []string{"agy", "copilot", "cursor", "gemini", "opencode"} {
		d := runtimeOf(t, name)
		silent := name == "copilot" || name == "gemini"
		for _, m := range d.Moments() {
			for _, n := range verdicts(m.Event) {
				said, _, _ := dialect.Express(m, &n.verdict)
				a, err := d.Encode(&dialect.Call{Moment: m, Event: schema.Event{HookType: m.Event}}, said)
				if err != nil {
					t.Fatal(err)
				}
				if len(a.Stdout) == 0 && silent {
					continue
				}
				if !json.Valid(a.Stdout) || !bytes.HasPrefix(a.Stdout, []byte("{")) || !bytes.HasSuffix(a.Stdout, []byte("}\n")) {
					t.Errorf("%s, %s, %s: %q", name, m.Name, n.name, a.Stdout)
				}
			}
		}
	}
}
