package schema_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

func TestACallHasTheSameFactsInEveryRuntime(t *testing.T) {
	const patch = `*** Begin Patch\n*** Add File: a.txt\n+one\n*** Update File: old.txt\n*** Move to: new.txt\n*** Delete File: gone.txt\n*** End Patch\n`
	for name, c := range map[string]struct{ runtime, tool, input, kind, args string }{
		"a command of Claude":     {"claude", "Bash", `{"command":"ls","description":"d"}`, "shell", `{"command":"ls"}`},
		"of Codex":                {"codex", "Bash", `{"command":"ls"}`, "shell", `{"command":"ls"}`},
		"of Codex, as words":      {"codex", "shell", `{"command":["ls","-l"],"workdir":"/w"}`, "shell", `{"command":"ls -l","cwd":"/w"}`},
		"of Gemini":               {"gemini", "run_shell_command", `{"command":"ls","dir_path":"/w"}`, "shell", `{"command":"ls","cwd":"/w"}`},
		"of an older Gemini":      {"gemini", "run_shell_command", `{"command":"ls","directory":"/w"}`, "shell", `{"command":"ls","cwd":"/w"}`},
		"of Qwen":                 {"qwen", "run_shell_command", `{"command":"ls","is_background":false}`, "shell", `{"command":"ls"}`},
		"of Cursor":               {"cursor", "Shell", `{"command":"ls","working_directory":""}`, "shell", `{"command":"ls"}`},
		"of Copilot":              {"copilot", "bash", `{"command":"ls"}`, "shell", `{"command":"ls"}`},
		"of Copilot, in Claude's": {"copilot", "Bash", `{"command":"ls"}`, "shell", `{"command":"ls"}`},
		"of OpenCode":             {"opencode", "bash", `{"command":"ls","workdir":"/w"}`, "shell", `{"command":"ls","cwd":"/w"}`},
		"of Cursor, in Claude's":  {"claude", "Shell", `{"command":"ls"}`, "shell", `{"command":"ls"}`},
		"of an editor's":          {"claude", "run_in_terminal", `{"command":"ls"}`, "shell", `{"command":"ls"}`},
		"of Cursor's servers":     {"claude", "MCP:echo", `{}`, "mcp", `{"tool":"echo"}`},
		"of agy":                  {"agy", "run_command", `{"CommandLine":"ls","Cwd":"/w"}`, "shell", `{"command":"ls","cwd":"/w"}`},
		"of agy, with a decoy":    {"agy", "run_command", `{"command":"ls","CommandLine":"rm"}`, "shell", `{"command":"rm"}`},
		"an invalid command":      {"claude", "Bash", `{"command":7}`, "shell", ``},
		"no input":                {"claude", "Bash", ``, "shell", ``},
		"two commands":            {"claude", "Bash", `{"command":"ls","command":"rm"}`, "shell", ``},

		"a file of Claude":      {"claude", "Write", `{"file_path":"/a","content":"secret"}`, "file.write", `{"paths":["/a"]}`},
		"several files":         {"claude", "Edit", `{"file_path":"/a","path":"/b"}`, "file.write", `{"paths":["/a","/b"]}`},
		"a patch of Codex":      {"codex", "apply_patch", `{"command":"` + patch + `"}`, "file.write", `{"paths":["a.txt","gone.txt","new.txt","old.txt"]}`},
		"of Copilot, by itself": {"copilot", "apply_patch", `"` + patch + `"`, "file.write", `{"paths":["a.txt","gone.txt","new.txt","old.txt"]}`},
		"a patch of OpenCode":   {"opencode", "apply_patch", `{"patchText":"` + patch + `"}`, "file.write", `{"paths":["a.txt","gone.txt","new.txt","old.txt"]}`},
		"a file of OpenCode":    {"opencode", "write", `{"filePath":"/a","content":"x"}`, "file.write", `{"paths":["/a"]}`},
		"a file of agy":         {"agy", "write_to_file", `{"TargetFile":"/a"}`, "file.write", `{"paths":["/a"]}`},
		"edits inside":          {"copilot", "multi_replace_string_in_file", `{"replacements":[{"filePath":"/a"},{"filePath":"/b"}]}`, "file.write", `{"paths":["/a","/b"]}`},
		"a file to read":        {"gemini", "read_file", `{"file_path":"/a"}`, "file.read", `{"paths":["/a"]}`},
		"a search":              {"claude", "Grep", `{"pattern":"x"}`, "file.read", `{"paths":["."]}`},
		"a write that names no": {"claude", "Write", `{"content":"x"}`, "file.write", ``},

		"a server's tool":           {"claude", "mcp__everything__echo", `{"message":"m"}`, "mcp", `{"server":"everything","tool":"echo"}`},
		"a tool for Qwen":           {"qwen", "mcp__a__b__c", `{}`, "mcp", `{"server":"a","tool":"b__c"}`},
		"for Gemini":                {"gemini", "mcp_everything_echo", `{}`, "mcp", `{"server":"everything","tool":"echo"}`},
		"for Gemini, ambiguous":     {"gemini", "mcp_a_b_c", `{}`, "mcp", ``},
		"for Cursor":                {"cursor", "MCP:echo", `{}`, "mcp", `{"tool":"echo"}`},
		"for Copilot":               {"copilot", "everything-echo", `{}`, "mcp", `{"server":"everything","tool":"echo"}`},
		"of Copilot, where it asks": {"copilot", "everything/echo", `{}`, "mcp", `{"server":"everything","tool":"echo"}`},
		"of Copilot, ambiguous":     {"copilot", "github-mcp-list_issues", `{}`, "mcp", ``},
		"for OpenCode":              {"opencode", "everything_echo", `{}`, "mcp", `{"server":"everything","tool":"echo"}`},
		"an agent":                  {"claude", "Agent", `{"subagent_type":"general-purpose","prompt":"p"}`, "subagent", `{"agent":"general-purpose"}`},
		"a page":                    {"opencode", "webfetch", `{"url":"https://example.org"}`, "web", `{"url":"https://example.org"}`},
		"a search of the web":       {"gemini", "google_web_search", `{"query":"q"}`, "web", `{"query":"q"}`},
		"an unknown tool":           {"claude", "Frob", `{"command":"ls"}`, "", ``},
		"an unknown runtime":        {"generic", "Bash", `{"command":"ls"}`, "", ``},
	} {
		t.Run(name, func(t *testing.T) {
			kind, args := schema.ToolFacts(c.runtime, c.tool, jsontext.Value(c.input))
			if kind != c.kind || string(args) != c.args {
				t.Errorf("%s %s, want %s %s", kind, args, c.kind, c.args)
			}
		})
	}
}

func TestATooLongFactIsLeftOut(t *testing.T) {
	for _, input := range []string{
		`{"command":"` + strings.Repeat("x", 70_000) + `; rm -rf /"}`,
		`{"file_path":"` + strings.Repeat("x", 70_000) + `"}`,
		`{"paths":["x` + strings.Join(numbers(2000), `","`) + `"]}`,
	} {
		for _, tool := range []string{"Bash", "Write"} {
			if _, args := schema.ToolFacts("claude", tool, jsontext.Value(input)); args != nil {
				t.Errorf("%s has the facts %.50s", tool, args)
			}
		}
	}
}

func numbers(n int) (out []string) {
	for i := range n {
		out = append(out, strings.Repeat("y", i%7)+string(rune('a'+i%26))+strings.Repeat("z", i/26))
	}
	return out
}

// A policy judges the call that will be made, not the original one.
func TestARewrittenCallHasNewFacts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.StringMatching(`[a-z -]{1,20}`).Draw(t, "command")
		e := &schema.Event{HookType: schema.PreToolUse, Runtime: "qwen", ToolName: "run_shell_command", ToolInput: jsontext.Value(`{"command":"ls"}`)}
		e.ToolKind, e.ToolArgs = schema.ToolFacts(e.Runtime, e.ToolName, e.ToolInput)
		next, _, err := e.Rewritten(jsontext.Value(`{"command":"` + command + `"}`))
		if err != nil || string(next.ToolArgs) != `{"command":"`+command+`"}` || string(e.ToolArgs) != `{"command":"ls"}` {
			t.Fatalf("%s, the event before %s, %v", next.ToolArgs, e.ToolArgs, err)
		}
	})
}

func TestUnknownFactsOfARewriteAreRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		event schema.Event
		want  string
	}{
		"of a loop of one's own": {schema.Event{Runtime: "generic", ToolName: "sh", ToolKind: "shell"}, ``},
		"of no kind any more":    {schema.Event{Runtime: "claude", ToolName: "Bash", ToolKind: "web"}, ``},
		"of a server":            {schema.Event{Runtime: "claude", ToolName: "mcp__s__t", ToolKind: "mcp"}, `{"command":"ls"}`},
	} {
		t.Run(name, func(t *testing.T) {
			e := c.event
			e.HookType, e.ToolArgs = schema.PreToolUse, jsontext.Value(`{"command":"ls"}`)
			if e.Apply(jsontext.Value(`{"command":"rm"}`)); string(e.ToolArgs) != c.want {
				t.Errorf("%s, want %s", e.ToolArgs, c.want)
			}
		})
	}
}

func TestFactsAreAnObject(t *testing.T) {
	r := schema.Routing{Event: schema.PreToolUse, Agent: "a"}
	for body, fine := range map[string]bool{`{"tool_args":{}}`: true, `{"tool_args":null}`: true, `{"tool_args":"ls"}`: false, `{"tool_args":[]}`: false} {
		if e, err := schema.DecodeEvent([]byte(body), r); (err == nil) != fine || fine && string(e.ToolArgs) == "null" {
			t.Errorf("%s: %v", body, err)
		}
	}
}
