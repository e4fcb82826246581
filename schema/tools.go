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

// A tool says where a call of it has what policies need to know.
type tool struct {
	kind string
	// command and cwd are members of a shell tool's input, text those of a patch.
	// cwd may name several, of which the first one counts that is there.
	command, cwd, text string
	// roams: without a path it begins where the agent is.
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

// claudeTools are those of Claude Code, whose names other runtimes take over
// where they run its hooks. Like all of these they are made when they are needed
// first: a shim that starts for each call of a tool needs few of them.
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

// copilotTools are those of the CLI, and those of the editor, which runs the
// same hooks.
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

// toolsOf are the tools that a runtime brings along; nil: nobody knows them.
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

// toolOf is a tool that a runtime brings along. Hooks of Claude Code's settings are
// run by editors as well, with tools of names that Claude Code never has.
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

// mcpName takes apart the name under which a runtime has a tool of an MCP
// server. What the name leaves open is empty: nobody guesses which server a
// policy is about.
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
		// Its own tools with such a name are among the known ones.
	default:
		return "", "", false
	}
	if strings.Count(rest, sep) == 1 {
		server, tool, _ = strings.Cut(rest, sep)
	}
	return server, tool, strings.Contains(rest, sep) || rest != name
}
