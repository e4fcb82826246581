package schema

import (
	"strings"
	"sync"
)

// The kinds of tools, the same for all runtimes. Tools outside these kinds have an empty kind.
const (
	// KindShell runs a command: tool_args has command, and cwd if the call names one.
	KindShell = "shell"
	// KindWrite changes files: tool_args lists all of them in paths.
	KindWrite = "file.write"
	// KindRead reads or searches files: tool_args lists them in paths.
	KindRead = "file.read"
	// KindMCP is a tool of an MCP server: tool_args has server and tool.
	KindMCP = "mcp"
	// KindSubagent starts another agent: tool_args has agent, its type.
	KindSubagent = "subagent"
	// KindWeb reads the web: tool_args has url or query.
	KindWeb = "web"
)

// A tool names the members of a call that policies need.
type tool struct {
	kind string
	// command and cwd are members of a shell tool's input, and text those of a patch. cwd
	// may name several, of which the first present one counts.
	command, cwd, text string
	// roams means that without a path it starts in the agent's folder.
	roams bool
}

func shell(command, cwd string) tool { return tool{kind: KindShell, command: command, cwd: cwd} }

var (
	writes = tool{kind: KindWrite}
	reads  = tool{kind: KindRead}
	looks  = tool{kind: KindRead, roams: true}
	starts = tool{kind: KindSubagent}
	surfs  = tool{kind: KindWeb}
)

func patches(member string) tool { return tool{kind: KindWrite, text: member} }

// claudeTools are the tools of Claude Code, whose names other runtimes use if they run
// its hooks. All tables are made on first use, because a shim that starts for each tool
// call needs few of them.
var claudeTools = sync.OnceValue(func() map[string]tool {
	return map[string]tool{
		"Bash": shell("command", ""), "PowerShell": shell("command", ""),
		"Write": writes, "Edit": writes, "MultiEdit": writes, "NotebookEdit": writes,
		"Read": reads, "NotebookRead": reads, "Glob": looks, "Grep": looks, "LS": looks,
		"Agent": starts, "Task": starts, "WebFetch": surfs, "WebSearch": surfs,
	}
})

var codexTools = sync.OnceValue(func() map[string]tool {
	return map[string]tool{
		"Bash": shell("command", "workdir"), "shell": shell("command", "workdir"), "local_shell": shell("command", "workdir"),
		"exec_command": shell("cmd", "workdir"), "apply_patch": patches("command"),
		"view_image": reads, "spawn_agent": starts, "web_search": surfs,
	}
})

var geminiTools = sync.OnceValue(func() map[string]tool {
	return map[string]tool{
		"run_shell_command": shell("command", "dir_path|directory"),
		"write_file":        writes, "replace": writes, "read_file": reads, "read_many_files": looks,
		"list_directory": looks, "glob": looks, "grep_search": looks, "search_file_content": looks,
		"delegate_to_agent": starts, "invoke_agent": starts, "web_fetch": surfs, "google_web_search": surfs,
	}
})

var qwenTools = sync.OnceValue(func() map[string]tool {
	return map[string]tool{
		"run_shell_command": shell("command", "directory"),
		"write_file":        writes, "edit": writes, "replace": writes, "notebook_edit": writes,
		"read_file": reads, "read_many_files": looks,
		"list_directory": looks, "glob": looks, "grep_search": looks, "search_file_content": looks,
		"task": starts, "agent": starts, "web_fetch": surfs, "web_search": surfs,
	}
})

var cursorTools = sync.OnceValue(func() map[string]tool {
	return map[string]tool{
		"Shell": shell("command", "working_directory"), "Bash": shell("command", "working_directory"),
		"Write": writes, "Edit": writes, "StrReplace": writes, "MultiEdit": writes, "NotebookEdit": writes, "EditNotebook": writes, "Delete": writes,
		"ApplyPatch": patches("patch"),
		"Read":       reads, "ReadFile": reads, "Grep": looks, "Glob": looks, "LS": looks,
		"Task": starts, "Agent": starts, "WebFetch": surfs, "WebSearch": surfs,
	}
})

// copilotTools are the tools of the CLI, and those of the editor, which runs the same
// hooks.
var copilotTools = sync.OnceValue(func() map[string]tool {
	return map[string]tool{
		"bash": shell("command", ""), "powershell": shell("command", ""), "Bash": shell("command", ""), "PowerShell": shell("command", ""),
		"run_in_terminal": shell("command", ""), "runInTerminal": shell("command", ""),
		"create": writes, "edit": writes, "Create": writes, "Edit": writes, "Write": writes, "MultiEdit": writes, "str_replace_editor": writes,
		"create_file": writes, "replace_string_in_file": writes, "multi_replace_string_in_file": writes, "insert_edit_into_file": writes,
		"edit_notebook_file": writes, "apply_patch": patches("input"),
		"view": reads, "View": reads, "Read": reads, "read_file": reads, "glob": looks, "grep": looks, "Glob": looks, "Grep": looks, "LS": looks,
		"list_dir": looks, "grep_search": looks, "file_search": looks,
		"task": starts, "Task": starts, "Agent": starts, "runSubagent": starts,
		"web_fetch": surfs, "web_search": surfs, "WebFetch": surfs, "WebSearch": surfs, "fetch_webpage": surfs,
	}
})

var opencodeTools = sync.OnceValue(func() map[string]tool {
	return map[string]tool{
		"bash": shell("command", "workdir"), "write": writes, "edit": writes, "multiedit": writes,
		"plan_exit": {}, "plan_enter": {}, "patch": patches("patchText"), "apply_patch": patches("patchText"),
		"read": reads, "list": looks, "glob": looks, "grep": looks, "task": starts, "webfetch": surfs, "websearch": surfs, "codesearch": surfs,
	}
})

var agyTools = sync.OnceValue(func() map[string]tool {
	return map[string]tool{
		"run_command":   shell("CommandLine", "Cwd"),
		"write_to_file": writes, "replace_file_content": writes, "multi_replace_file_content": writes,
		"view_file": reads, "list_dir": looks, "grep_search": looks, "find_by_name": looks,
		"browser_subagent": starts, "invoke_subagent": starts, "search_web": surfs, "read_url_content": surfs,
	}
})

// toolsOf returns the tools of a runtime; nil: they are unknown.
func toolsOf(runtime string) map[string]tool {
	switch runtime {
	case "claude":
		return claudeTools()
	case "codex":
		return codexTools()
	case "gemini":
		return geminiTools()
	case "qwen":
		return qwenTools()
	case "cursor":
		return cursorTools()
	case "copilot":
		return copilotTools()
	case "opencode":
		return opencodeTools()
	case "agy":
		return agyTools()
	}
	return nil
}

// toolOf returns a tool of a runtime. Editors also run hooks of Claude Code's settings,
// with names of tools that Claude Code does not have.
func toolOf(runtime, name string) (t tool, known bool) {
	if t, known = toolsOf(runtime)[name]; known || runtime != "claude" {
		return t, known
	}
	if t, known = cursorTools()[name]; !known {
		t, known = copilotTools()[name]
	}
	return t, known
}

// Tools returns a runtime's built-in tools and their kinds; nil for an unknown runtime.
func Tools(runtime string) map[string]string {
	known := toolsOf(runtime)
	if known == nil {
		return nil
	}
	kinds := make(map[string]string, len(known))
	for name, t := range known {
		kinds[name] = t.kind
	}
	return kinds
}

// mcpName splits a runtime's name of a tool of an MCP server. A part that the name leaves
// open is empty, because a policy must not depend on a guess.
func mcpName(runtime, name string) (server, tool string, ok bool) {
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		server, tool, _ = strings.Cut(rest, "__")
		return server, tool, true
	}
	rest, sep := name, "_"
	switch runtime {
	case "gemini", "agy":
		if rest, ok = strings.CutPrefix(name, "mcp_"); !ok {
			return "", "", false
		}
	case "cursor", "claude":
		tool, ok = strings.CutPrefix(name, "MCP:")
		return "", tool, ok
	case "copilot":
		if sep = "-"; strings.Contains(name, "/") {
			sep = "/"
		}
	case "opencode":
		// The runtime's own tools with such a name are in its table.
	default:
		return "", "", false
	}
	if strings.Count(rest, sep) == 1 {
		server, tool, _ = strings.Cut(rest, sep)
	}
	return server, tool, strings.Contains(rest, sep) || rest != name
}
