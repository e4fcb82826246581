package dialect_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

const claudeBash = `{"session_id":"s","prompt_id":"p","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"u"}`

// momentOf returns a runtime's moment, or the zero Moment for an empty name.
func momentOf(t testing.TB, runtime, name string) dialect.Moment {
	t.Helper()
	if name == "" {
		return dialect.Moment{}
	}
	m, err := dialect.Find(runtimeOf(t, runtime), name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A release with additional members is not another runtime.
func TestNewMembersAreNoFaults(t *testing.T) {
	for _, added := range []string{"timestamp", "turn_id", "anything"} {
		payload := strings.Replace(claudeBash, `"cwd"`, `"`+added+`":"t","cwd"`, 1)
		if _, err := runtimeOf(t, "claude").Decode(dialect.Input{Moment: momentOf(t, "claude", "PreToolUse"), Payload: []byte(payload)}); err != nil {
			t.Errorf("with %s: %v", added, err)
		}
	}
}

// A payload that does not fit the command line is a configuration error, and the message says so.
// The answer can still refuse the call.
func TestPayloadsThatDoNotFitAreFaults(t *testing.T) {
	for name, c := range map[string]struct{ runtime, event, payload, want, moment string }{
		"another event":                         {"claude", "PostToolUse", claudeBash, "configure the hook at the event", "PreToolUse"},
		"another event, which cannot refuse":    {"claude", "PreToolUse", `{"hook_event_name":"PostToolUse","tool_name":"Bash"}`, "configure the hook at the event", "PreToolUse"},
		"an event that it does not have":        {"claude", "", `{"hook_event_name":"Frob"}`, "does not have", ""},
		"no event anywhere":                     {"codex", "", `{"session_id":"s"}`, "--event PreToolUse", ""},
		"no event in the payload":               {"codex", "PreToolUse", `{"session_id":"s"}`, "no hook_event_name", "PreToolUse"},
		"Copilot's own form":                    {"claude", "PreToolUse", `{"sessionId":"s","toolName":"bash","toolArgs":{}}`, "--runtime copilot", "PreToolUse"},
		"Gemini's":                              {"claude", "PreToolUse", `{"hook_event_name":"BeforeTool","tool_name":"x","tool_input":{}}`, "--runtime gemini", "PreToolUse"},
		"Codex's, in Claude Code":               {"claude", "PreToolUse", strings.Replace(claudeBash, "prompt_id", "turn_id", 1), "--runtime codex", "PreToolUse"},
		"Claude Code's, in Codex":               {"codex", "PreToolUse", claudeBash, "--runtime claude", "PreToolUse"},
		"Qwen Code's, in Claude Code":           {"claude", "PreToolUse", strings.Replace(claudeBash, `"cwd"`, `"tool_call_id":"call_1","cwd"`, 1), "--runtime qwen", "PreToolUse"},
		"Claude Code's, in Qwen Code":           {"qwen", "PreToolUse", claudeBash, "--runtime claude", "PreToolUse"},
		"nothing":                               {"claude", "PreToolUse", "", "is empty", "PreToolUse"},
		"a list":                                {"qwen", "PreToolUse", "[1]", "is a list", "PreToolUse"},
		"no tool":                               {"claude", "PreToolUse", strings.Replace(claudeBash, "tool_name", "tool", 1), "has no tool_name", "PreToolUse"},
		"an input that is a text":               {"claude", "PreToolUse", strings.Replace(claudeBash, `{"command":"ls"}`, `"ls"`, 1), "is a string", "PreToolUse"},
		"no input":                              {"claude", "PreToolUse", strings.Replace(claudeBash, `{"command":"ls"}`, "null", 1), "is empty", "PreToolUse"},
		"half of one":                           {"claude", "PreToolUse", claudeBash[:120], "--runtime", "PreToolUse"},
		"two tools":                             {"claude", "PreToolUse", strings.Replace(claudeBash, "{", `{"tool_name":"Read",`, 1), "--runtime", "PreToolUse"},
		"a session that is a number":            {"claude", "PreToolUse", strings.Replace(claudeBash, `"s"`, `7`, 1), "--runtime", "PreToolUse"},
		"a permission for something else asked": {"codex", "PermissionRequest", `{"hook_event_name":"PreToolUse","tool_name":"Bash"}`, "configure the hook at the event", "PermissionRequest"},
	} {
		t.Run(name, func(t *testing.T) {
			d := runtimeOf(t, c.runtime)
			call, err := d.Decode(dialect.Input{Moment: momentOf(t, c.runtime, c.event), Payload: []byte(c.payload)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the fault is %v, and should say %q", err, c.want)
			}
			if call.Moment.Name != c.moment || call.Event.HookType != call.Moment.Event {
				t.Errorf("it is at %q, the event %q; want %q", call.Moment.Name, call.Event.HookType, c.moment)
			}
		})
	}
}

// The call of an unreadable payload still has the session and the tool.
func TestWhatCanBeSeenOfAFaultyPayload(t *testing.T) {
	m := momentOf(t, "claude", "PreToolUse")
	for name, payload := range map[string]string{
		"half of one":           `{"session_id":"s","cwd":"/w","agent_id":"a","tool_name":"Bash","tool_use_id":"u","tool_input":{"comm`,
		"a member of that name": `{"session_id":"s","x":1,"x":2,"cwd":"/w","agent_id":"a","tool_name":"Bash","tool_use_id":"u"}`,
	} {
		c, err := runtimeOf(t, "claude").Decode(dialect.Input{Moment: m, Payload: []byte(payload)})
		if err == nil {
			t.Errorf("%s: it is no fault", name)
		}
		want := schema.Event{HookType: schema.PreToolUse, SessionID: "s", Cwd: "/w", ToolName: "Bash", ToolUseID: "u"}
		if d := cmp.Diff(want, c.Event); d != "" || c.Subagent != "a" {
			t.Errorf("%s: of the subagent %q (-want +got)\n%s", name, c.Subagent, d)
		}
	}
}

func TestAPayloadMayBeginWithAByteOrderMark(t *testing.T) {
	c, err := runtimeOf(t, "claude").Decode(dialect.Input{Payload: []byte("\xef\xbb\xbf \r\n" + claudeBash + "\n")})
	if err != nil || c.Event.ToolName != "Bash" || c.Moment.Name != "PreToolUse" {
		t.Errorf("%+v, %v", c, err)
	}
}

// A release with additional members is not another runtime.
func TestANewMemberIsNoFault(t *testing.T) {
	for name, payload := range map[string]string{
		"a time in Claude Code's": strings.Replace(claudeBash, "{", `{"timestamp":"2026-11-22T00:00:00Z",`, 1),
		"any other":               strings.Replace(claudeBash, "{", `{"frob":[{}],`, 1),
	} {
		if c, err := runtimeOf(t, "claude").Decode(dialect.Input{Payload: []byte(payload)}); err != nil || c.Event.ToolName != "Bash" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Qwen Code names a subagent in the environment; for the agent itself, the variable is empty. The
// dialects of other runtimes ignore the variable.
func TestTheEnvironmentTellsSubagentsOfQwen(t *testing.T) {
	payload := []byte(`{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"run_shell_command","tool_input":{"command":"ls"}}`)
	for _, c := range []struct{ runtime, id, want string }{{"qwen", "general-1", "general-1"}, {"qwen", "", ""}, {"claude", "general-1", ""}} {
		env := func(name string) string { return map[string]string{"QWEN_CODE_AGENT_ID": c.id}[name] }
		call, err := runtimeOf(t, c.runtime).Decode(dialect.Input{Payload: payload, Env: env})
		if err != nil || call.Subagent != c.want || call.Event.Labels["subagent"] != c.want {
			t.Errorf("%+v: of the subagent %q, %v", c, call.Subagent, err)
		}
	}
}

// A command that Copilot runs may start Claude Code, whose payloads are then not Copilot's.
func TestClaudeCodeInsideCopilotIsClaudeCode(t *testing.T) {
	inCopilot := func(name string) string { return map[string]string{"COPILOT_CLI": "1"}[name] }
	d := runtimeOf(t, "claude")
	c, err := d.Decode(dialect.Input{Payload: []byte(claudeBash), Env: inCopilot})
	if err != nil || c.Form != "" || c.Event.Runtime != "" || c.Moment.Can[dialect.Replace] == c.Moment.Can[dialect.Stop] {
		t.Errorf("%+v, %v", c, err)
	}
	const copilots = `{"hook_event_name":"PreToolUse","session_id":"s","timestamp":"t","cwd":"/w","tool_name":"Bash","tool_input":{}}`
	if c, err = d.Decode(dialect.Input{Payload: []byte(copilots), Env: inCopilot}); err != nil || c.Event.Runtime != "copilot" || c.Moment.Can[dialect.Stop] != dialect.Impossible {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err = d.Decode(dialect.Input{Payload: []byte(copilots), Env: inCopilot, Moment: momentOf(t, "claude", "Stop")}); err == nil || !strings.Contains(err.Error(), "configure the hook at the event") {
		t.Errorf("another event is no fault: %v", err)
	}
}

// keyOf returns the key of a call with the given input and without an id.
func keyOf(t *testing.T, event, tool, input string) string {
	t.Helper()
	payload := `{"hook_event_name":"` + event + `","session_id":"s","tool_name":"` + tool + `","tool_input":` + input + `}`
	c, err := runtimeOf(t, "claude").Decode(dialect.Input{Payload: []byte(payload)})
	if err != nil || c.ByID || c.Key == "" || !strings.HasSuffix(c.Key, "/"+c.Pair) {
		t.Fatalf("%+v, %v", c, err)
	}
	return c.Key
}

// A call without an id has the same key in each spelling and at each moment, and no other call has that key.
func TestACallWithoutAnIDIsKnownByWhatItIs(t *testing.T) {
	one := keyOf(t, "PreToolUse", "Bash", `{"command":"ls","n":9007199254740993}`)
	for name, same := range map[string]string{
		"written otherwise":     keyOf(t, "PreToolUse", "Bash", "{ \"n\":9007199254740993,\n\"command\":\"l\\u0073\"}"),
		"a permission is asked": keyOf(t, "PermissionRequest", "Bash", `{"command":"ls","n":9007199254740993}`),
	} {
		if same != one {
			t.Errorf("%s: %s and %s", name, one, same)
		}
	}
	for name, other := range map[string]string{
		"another number":                 keyOf(t, "PreToolUse", "Bash", `{"command":"ls","n":9007199254740992}`),
		"another tool":                   keyOf(t, "PreToolUse", "Read", `{"command":"ls","n":9007199254740993}`),
		"after the call":                 keyOf(t, "PostToolUse", "Bash", `{"command":"ls","n":9007199254740993}`),
		"one more member":                keyOf(t, "PreToolUse", "Bash", `{"command":"ls","n":9007199254740993,"m":1}`),
		"the tool's name in the command": keyOf(t, "PreToolUse", "Ba", `{"command":"ls","n":9007199254740993}`),
	} {
		if other == one {
			t.Errorf("%s: %s", name, other)
		}
	}
}

func TestBothPhasesOfACallWithAnIDArePaired(t *testing.T) {
	d := runtimeOf(t, "claude")
	pre, err := d.Decode(dialect.Input{Payload: []byte(claudeBash)})
	if err != nil {
		t.Fatal(err)
	}
	post, err := d.Decode(dialect.Input{Payload: []byte(strings.Replace(claudeBash, "PreToolUse", "PostToolUseFailure", 1))})
	if err != nil {
		t.Fatal(err)
	}
	if pre.Key != "pre/u" || post.Key != "post/u" || pre.Pair != post.Pair || !pre.ByID || !post.ByID {
		t.Errorf("%+v\n%+v", pre, post)
	}
}

// A permission request with the input that a hook rewrote is no second rewrite.
func TestARewriteToTheSameIsNone(t *testing.T) {
	for _, runtime := range []string{"claude", "codex", "qwen"} {
		d := runtimeOf(t, runtime)
		c := &dialect.Call{Moment: momentOf(t, runtime, "PermissionRequest"),
			Event: schema.Event{HookType: schema.PreToolUse, ToolInput: []byte(`{"command":"ls","n":1}`)}}
		said, _, _ := dialect.Express(c.Moment, &schema.Verdict{UpdatedInput: []byte(`{ "n":1, "command":"ls"}`)})
		if a, err := d.Encode(c, said); err != nil || len(a.Stdout) > 0 || a.Exit != 0 {
			t.Errorf("%s: %s, %v", runtime, bytesOf(a), err)
		}
	}
}

// Replaced outputs have the shape of the tool's own output, with the new text in place of the old one.
func TestReplacedOutputsHaveTheToolsShape(t *testing.T) {
	const (
		bash  = `{"stdout":"was","stderr":"secret","interrupted":false,"isImage":false,"structuredContent":["secret"]}`
		file  = `{"type":"text","file":{"filePath":"/a","content":"was","numLines":1}}`
		found = `{"mode":"files_with_matches","filenames":["secret"],"numFiles":1}`
		text  = `{"file":{"content":"new","filePath":"/a","numLines":1,"startLine":1,"totalLines":1},"type":"text"}`
	)
	for name, c := range map[string]struct{ tool, was, output, want string }{
		"a text for Bash":                {"Bash", bash, `"new"`, `{"interrupted":false,"isImage":false,"stderr":"","stdout":"new"}`},
		"an object for Bash":             {"Bash", bash, `{"stdout":"new","stderr":"e"}`, `{"interrupted":false,"isImage":false,"stderr":"e","stdout":"new"}`},
		"a number for Bash":              {"Bash", bash, `7`, `{"interrupted":false,"isImage":false,"stderr":"","stdout":"7"}`},
		"a foreign object for Bash":      {"Bash", bash, `{"a":1}`, `{"interrupted":false,"isImage":false,"stderr":"","stdout":"{\"a\":1}"}`},
		"a number where Bash has a text": {"Bash", bash, `{"stdout":7}`, `{"interrupted":false,"isImage":false,"stderr":"","stdout":"{\"stdout\":7}"}`},
		"Bash that said nothing":         {"Bash", ``, `"new"`, `{"interrupted":false,"isImage":false,"stderr":"","stdout":"new"}`},
		"a text for Read":                {"Read", file, `"new"`, text},
		"an object for Read":             {"Read", file, `{"file":{"content":"new"}}`, `{"file":{"content":"new","filePath":"/a","numLines":1},"type":"text"}`},
		"a number where Read has a text": {"Read", file, `{"file":{"content":7}}`, strings.Replace(text, `"new"`, `"{\"file\":{\"content\":7}}"`, 1)},
		"a text for a picture":           {"Read", `{"type":"image","file":{"base64":"secret"}}`, `"new"`, text},
		"a text for an agent":            {"Agent", `{"status":"completed","content":[]}`, `"new"`, `{"content":[{"text":"new","type":"text"}],"status":"completed"}`},
		"a text for a search":            {"Grep", `{"mode":"content","content":"was","filenames":[],"numFiles":0}`, `"new"`, `{"content":"new","filenames":[],"mode":"content","numFiles":0}`},
		"a text for a search for files":  {"Grep", found, `"new"`, `{"content":"new","filenames":[],"mode":"content","numFiles":0}`},
		"a text for names of files":      {"Glob", `{"filenames":["secret"],"numFiles":1}`, `"new"`, `{"filenames":["new"],"numFiles":1}`},
		"a text for a page":              {"WebFetch", `{"code":200,"result":"was"}`, `"new"`, `{"code":200,"result":"new"}`},
		"a text for a search of the web": {"WebSearch", `{"query":"q","results":[{"content":[]},"was"]}`, `"new"`, `{"query":"q","results":["new"]}`},
		"a text for a file written":      {"Write", `{"type":"create","filePath":"/a"}`, `"new"`, `{"filePath":"new","type":"create"}`},
		"a text for a file edited":       {"Edit", `{"filePath":"/a","replaceAll":false}`, `"new"`, `{"filePath":"new","replaceAll":false}`},
		"a text for a notebook":          {"NotebookEdit", `{"edit_mode":"replace","new_source":"was"}`, `"new"`, `{"edit_mode":"replace","new_source":"new"}`},
		"its own shape, of a new one":    {"Frob", `{"a":1,"b":2}`, `{"b":3}`, `{"a":1,"b":3}`},
		"a tool that says a text":        {"Frob", `"was"`, `{"b":3}`, `"{\"b\":3}"`},
		"a tool that says a list":        {"Frob", `[1]`, `[2]`, `[2]`},
		"a text for a server":            {"mcp__s__t", `[{"type":"text","text":"was"}]`, `"new"`, `[{"text":"new","type":"text"}]`},
		"a list for a server":            {"mcp__s__t", `[]`, `[{"type":"text","text":"new"}]`, `[{"type":"text","text":"new"}]`},
		"a server's whole result":        {"mcp__s__t", `[]`, `{"content":[],"isError":true}`, `[]`},
		"an object for a server":         {"mcp__s__t", `[]`, `{"a":1}`, `[{"text":"{\"a\":1}","type":"text"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			want := `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":` + c.want + "}}\n"
			if d := cmp.Diff(want, replacedBy(t, c.tool, c.was, c.output)); d != "" {
				t.Error(d)
			}
		})
	}
}

// replacedBy returns the answer about a call whose output a hook replaces.
func replacedBy(t *testing.T, tool, was, output string) string {
	t.Helper()
	call := &dialect.Call{Moment: momentOf(t, "claude", "PostToolUse"),
		Event: schema.Event{HookType: schema.PostToolUse, ToolName: tool, ToolInput: []byte(`{"file_path":"/a"}`), ToolOutput: []byte(was)}}
	a, err := runtimeOf(t, "claude").Encode(call, &schema.Verdict{UpdatedOutput: []byte(output)})
	if err != nil {
		t.Fatal(err)
	}
	return string(a.Stdout)
}

// An output of unknown shape loses all its texts. The model also gets the new output in the
// context.
func TestAnOutputOfAnUnknownShapeIsReplacedAllOver(t *testing.T) {
	const was = `{"status":"completed","n":1,"items":[{"name":"the first secret"},{"name":"s3cret"}]}`
	want := `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"items":[{"name":"new"},{"name":"(replaced by a hook)"}],"n":1,"status":"completed"},` +
		`"additionalContext":"A hook replaces the output above with this one:\nnew"}}` + "\n"
	if d := cmp.Diff(want, replacedBy(t, "Frob", was, `"new"`)); d != "" {
		t.Error(d)
	}
}

// The default timeouts of the runtimes are as documented. A runtime ignores a later answer.
func TestMomentsHaveTheRuntimesTimes(t *testing.T) {
	for _, c := range []struct{ runtime, moment, want string }{
		{"claude", "PreToolUse", "10m0s"}, {"claude", "UserPromptSubmit", "30s"}, {"claude", "SessionEnd", "1.5s"}, {"claude", "MessageDisplay", "10s"},
		{"codex", "PreToolUse", "10m0s"}, {"codex", "SessionEnd", "1s"}, {"codex", "Interrupt", "1s"}, {"qwen", "PreToolUse", "1m0s"},
	} {
		if m := momentOf(t, c.runtime, c.moment); m.Timeout.String() != c.want {
			t.Errorf("%s waits %s at %s, not %s", c.runtime, m.Timeout, c.moment, c.want)
		}
	}
	if n := len(runtimeOf(t, "claude").Moments()); n != 33 {
		t.Errorf("Claude Code has %d events, not 33", n)
	}
	if n := len(runtimeOf(t, "codex").Moments()); n != 14 {
		t.Errorf("Codex has %d events, not 14", n)
	}
	if n := len(runtimeOf(t, "qwen").Moments()); n != 22 {
		t.Errorf("Qwen Code has %d events, not 22", n)
	}
}

// Hooks that answer at every end of a turn keep an agent going once only. A text that waited for the
// agent keeps it going each time, because each such text comes once.
func TestAnAgentGoesOnForWhatWaited(t *testing.T) {
	for runtime, event := range map[string]string{"claude": "Stop", "codex": "Stop", "qwen": "Stop", "gemini": "AfterAgent", "copilot": "Stop", "cursor": "stop"} {
		d := runtimeOf(t, runtime)
		at := func(active string) *dialect.Call {
			loops := map[string]string{"false": "0", "true": "1"}[active]
			c, err := d.Decode(dialect.Input{Payload: []byte(`{"hook_event_name":"` + event + `","session_id":"s","stop_hook_active":` + active + `,"loop_count":` + loops + `}`)})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		reminder := schema.Injection{Content: "remember", Strategy: schema.UserMessage, Hook: "h"}
		waited := schema.Injection{Content: "from a person", Strategy: schema.UserMessage, Hook: "human_input", Source: "human", Sequence: 7}
		for name, c := range map[string]struct {
			active string
			told   []schema.Injection
			want   string
		}{
			"at the first end of the turn":     {"false", []schema.Injection{reminder}, "remember"},
			"at the next one":                  {"true", []schema.Injection{reminder}, ""},
			"at the next one, and some waited": {"true", []schema.Injection{reminder, waited}, "remember\n\nfrom a person"},
		} {
			call := at(c.active)
			a, err := d.Encode(call, &schema.Verdict{Injections: c.told})
			if err != nil {
				t.Fatal(err)
			}
			if o := obeys(runtime, call, a); o.goesOn != c.want {
				t.Errorf("%s, %s: it goes on with %q, not %q", runtime, name, o.goesOn, c.want)
			}
		}
	}
}
