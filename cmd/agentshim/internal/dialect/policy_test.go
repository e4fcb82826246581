package dialect_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// oneOf lists a recorded call of each kind of tool in each runtime, by the name of its file.
func oneOf() map[string]map[string]string {
	return map[string]map[string]string{
		"claude":   {"shell": "PreToolUse.Bash", "write": "PreToolUse.Write", "read": "PreToolUse.Read", "mcp": "PreToolUse.mcp__everything__echo"},
		"codex":    {"shell": "PreToolUse.Bash", "write": "PreToolUse.apply_patch", "mcp": "PreToolUse.mcp__everything__echo"},
		"gemini":   {"shell": "BeforeTool.run_shell_command", "write": "BeforeTool.write_file", "read": "BeforeTool.read_file", "mcp": "BeforeTool.mcp_everything_echo"},
		"cursor":   {"shell": "preToolUse.Shell", "write": "preToolUse.Write", "read": "beforeReadFile"},
		"copilot":  {"shell": "preToolUse.bash", "write": "preToolUse.create", "read": "preToolUse.view", "mcp": "permissionRequest.everything__echo"},
		"qwen":     {"shell": "PreToolUse.run_shell_command", "mcp": "PreToolUse.mcp__everything__echo"},
		"opencode": {"shell": "tool.execute.before.bash", "write": "tool.execute.before.write", "mcp": "tool.execute.before.everything_echo"},
		"agy":      {"shell": "PreToolUse.run_command", "write": "PreToolUse.write_to_file"},
	}
}

// One condition per kind matches the calls of all runtimes, and no call of another kind.
func TestOneConditionFitsEveryRuntime(t *testing.T) {
	conditions := map[string]string{
		"shell": `tool_kind == "shell" && (tool_args.command.contains("ran") || tool_args.command.contains("make") || tool_args.command == "echo hi")`,
		"write": `tool_kind == "file.write" && tool_args.paths.exists(p, p.endsWith("a.txt"))`,
		"read":  `tool_kind == "file.read" && tool_args.paths == ["/home/dev/project/a.txt"]`,
		"mcp":   `tool_kind == "mcp" && tool_args.server == "everything" && tool_args.tool == "echo"`,
	}
	compiler, err := cond.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for _, runtime := range dialect.Names() {
		if runtime == "generic" {
			continue // what it says is what its users say
		}
		for kind, file := range oneOf()[runtime] {
			e := recorded(t, runtime, file)
			for of, expr := range conditions {
				c, err := compiler.Compile(expr)
				if err != nil {
					t.Fatal(err)
				}
				if holds, err := c.Holds(viewOf(t, e)); err != nil || holds != (of == kind) {
					t.Errorf("%s, %s: %s is %t, %v", runtime, file, expr, holds, err)
				}
			}
		}
		if len(oneOf()[runtime]) == 0 {
			t.Errorf("no call of %s is held against the conditions; add one", runtime)
		}
	}
}

// Facts name the subject of a call, and never hold its contents.
func TestFactsHoldNoContents(t *testing.T) {
	for _, x := range exchanges(t) {
		c, _ := runtimeOf(t, x.runtime).Decode(x.input(t))
		args := members(c.Event.ToolArgs)
		for name := range args {
			if !strings.Contains(" command cwd paths server tool agent url query ", " "+name+" ") {
				t.Errorf("%s: tool_args has %s, which wire.md does not", x.name(), name)
			}
		}
		if c.Event.ToolKind == "" && len(args) > 0 {
			t.Errorf("%s: facts of no kind: %s", x.name(), c.Event.ToolArgs)
		}
	}
}

// recorded returns the event of a recorded exchange.
func recorded(t *testing.T, runtime, file string) *schema.Event {
	t.Helper()
	x := read(t, runtime, filepath.Join("testdata", runtime, file+".txtar"))
	c, err := runtimeOf(t, runtime).Decode(x.input(t))
	if err != nil {
		t.Fatalf("%s: %v", x.path, err)
	}
	return &c.Event
}

// viewOf returns an event as a broker's conditions see it.
func viewOf(t *testing.T, e *schema.Event) *dispatch.View {
	t.Helper()
	body, err := schema.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return dispatch.NewView(schema.Routing{Event: e.HookType, Agent: "a", Session: e.SessionID, Tool: e.ToolName}, body)
}
