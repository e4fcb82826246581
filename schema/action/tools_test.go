package action_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/action"
)

// parsed returns the action of a call. The shim's facts are those of the runtime.
func parsed(runtime, tool, input string) *action.Action {
	e := &schema.Event{HookType: schema.PreToolUse, Runtime: runtime, ToolName: tool, ToolInput: jsontext.Value(input), Cwd: "/work"}
	e.ToolKind, e.ToolArgs = schema.ToolFacts(runtime, tool, e.ToolInput)
	return action.Parse(e)
}

func TestToolsOfAllRuntimes(t *testing.T) {
	for _, c := range []struct {
		runtime, tool, input string
		kind                 action.Kind
		want                 string
	}{
		{"claude", "Bash", `{"command":"rm -rf x"}`, action.Shell, "delete /work/x"},
		{"codex", "shell", `{"command":["bash","-lc","rm -rf 'a b'"],"workdir":"/r"}`, action.Shell, "delete /r/a b"},
		{"codex", "exec_command", `{"cmd":"rm x","workdir":"sub"}`, action.Shell, "delete /work/sub/x"},
		{"gemini", "run_shell_command", `{"command":"rm x","directory":"sub"}`, action.Shell, "delete /work/sub/x"},
		{"cursor", "Shell", `{"command":"rm x"}`, action.Shell, "delete /work/x"},
		{"copilot", "bash", `{"command":"rm x"}`, action.Shell, "delete /work/x"},
		{"opencode", "bash", `{"command":"rm x"}`, action.Shell, "delete /work/x"},
		{"qwen", "run_shell_command", `{"command":"rm x"}`, action.Shell, "delete /work/x"},
		{"agy", "run_command", `{"CommandLine":"rm x","Cwd":"/r"}`, action.Shell, "delete /r/x"},
		{"generic", "bash", `{"command":"rm x"}`, action.Shell, "delete /work/x"},
		{"claude", "Read", `{"file_path":"/etc/passwd"}`, action.Read, "read /etc/passwd"},
		{"claude", "Write", `{"file_path":"a","content":"see https://x.example"}`, action.Write, "write /work/a"},
		{"claude", "Edit", `{"file_path":"/a/../b","old_string":"x"}`, action.Edit, "write /b"},
		{"claude", "MultiEdit", `{"file_path":"a"}`, action.Edit, "write /work/a"},
		{"claude", "Grep", `{"pattern":"x","path":"src"}`, action.Search, "read /work/src"},
		{"claude", "Glob", `{"pattern":"*.go"}`, action.Search, "read /work"},
		{"cursor", "Delete", `{"path":"a"}`, action.Delete, "delete /work/a"},
		{"codex", "apply_patch", `{"command":"*** Begin Patch\n*** Delete File: a\n*** Update File: b\n*** Move to: c\n*** End Patch"}`, action.Patch, "write /work/a; write /work/b; write /work/c"},
		{"claude", "Task", `{"subagent_type":"x","prompt":"y"}`, action.Subagent, ""},
		{"claude", "mcp__fs__write_file", `{"path":"a","file_uri":"file:///x"}`, action.MCP, "write /work/a"},
		{"claude", "Unknown", `{"target_file":"a"}`, action.Other, "write /work/a"},
		{"", "read_file", `{"path":"a"}`, action.Read, "read /work/a"},
	} {
		a := parsed(c.runtime, c.tool, c.input)
		if got := strings.Join(pathsOf(a), "; "); a.Kind != c.kind || got != c.want || a.Unparsed != "" {
			t.Errorf("%s %s %s is %s with %q (%s)", c.runtime, c.tool, c.input, a.Kind, got, a.Unparsed)
		}
	}
	for tool, kind := range map[string]action.Kind{"WebFetch": action.Fetch, "WebSearch": action.Search} {
		a := parsed("claude", tool, `{"url":"https://E.example/x","query":"y"}`)
		if a.Kind != kind || strings.Join(a.Hosts, " ") != "e.example" {
			t.Errorf("%s is %s with the hosts %q", tool, a.Kind, a.Hosts)
		}
	}
}

func TestCallsThatCannotBeParsedSayWhy(t *testing.T) {
	for _, c := range [][3]string{
		{"Bash", `{"command":"echo 'x"}`, "the shell syntax is not valid: 1:6: reached EOF without closing quote `'`"},
		{"Bash", `{"command":["a",1]}`, "it names no command that can be read"},
		{"Bash", `{}`, "it names no command that can be read"},
		{"Bash", `[]`, "its input is not an object"},
		{"PowerShell", `{"command":"Remove-Item x"}`, "scripts of PowerShell and cmd are not parsed"},
		{"Bash", `{"command":"pwsh -c 'rm x'"}`, "scripts of pwsh are not parsed"},
		{"Bash", `{"command":"` + strings.Repeat("a", 64<<10+1) + `"}`, "the command has more than 65536 bytes"},
		{"Bash", `{"command":"` + strings.Repeat("(", 1000) + `"}`, "its commands are nested deeper than 50 levels"},
		{"Bash", `{"command":"` + strings.Repeat("if a; then b; ", 60) + strings.Repeat("fi;", 60) + `"}`, "its commands are nested deeper than 50 levels"},
		{"Bash", `{"command":"` + strings.Repeat("a$i;", 1001) + `"}`, ""},
	} {
		if a := parsed("claude", c[0], c[1]); a.Unparsed != c[2] {
			t.Errorf("%.80s: %q, not %q", c[1], a.Unparsed, c[2])
		}
	}
}

func TestCommandsBeforeAnErrorCount(t *testing.T) {
	if a := action.Script("rm -rf /srv\necho 'x", ""); len(a.Commands) != 1 || a.Unparsed == "" {
		t.Errorf("it has the commands %v (%s)", lines(a), a.Unparsed)
	}
}
