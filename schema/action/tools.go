package action

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"mvdan.cc/sh/v3/syntax"

	"github.com/hookfabric/hookfabric/schema"
)

// kindOf returns what a tool does, by the kind from its shim or else by its name.
func kindOf(e *schema.Event) Kind {
	kind := e.ToolKind
	if kind == "" {
		kind, _ = schema.ToolFacts(e.Runtime, e.ToolName, nil)
	}
	name := plainName(e.ToolName)
	switch kind {
	case schema.KindShell:
		return Shell
	case schema.KindMCP:
		return MCP
	case schema.KindSubagent:
		return Subagent
	case schema.KindWeb:
		if strings.Contains(name, "search") {
			return Search
		}
		return Fetch
	case schema.KindRead:
		if isSearch(name) {
			return Search
		}
		return Read
	case schema.KindWrite:
		return writing(name)
	}
	return named(name)
}

// named returns the kind of a tool that only has a name.
func named(name string) Kind {
	switch name {
	case "bash", "sh", "shell", "zsh", "exec", "execcommand", "localshell", "runshellcommand", "runcommand", "runinterminal", "runterminalcmd", "execute", "executecommand", "terminal", "powershell":
		return Shell
	case "read", "readfile", "readtextfile", "view", "viewfile", "viewimage", "notebookread", "readmultiplefiles", "readmanyfiles":
		return Read
	case "write", "writefile", "writetofile", "create", "createfile":
		return Write
	case "edit", "editfile", "multiedit", "notebookedit", "strreplace", "strreplaceeditor", "replacefilecontent", "insert", "replace":
		return Edit
	case "applypatch", "patch":
		return Patch
	case "delete", "deletefile", "removefile":
		return Delete
	case "fetch", "webfetch", "webget", "readurl", "browse":
		return Fetch
	case "task", "agent", "spawnagent", "subagent":
		return Subagent
	}
	if isSearch(name) {
		return Search
	}
	return Other
}

// isSearch reports whether a tool looks for files, texts or pages.
func isSearch(name string) bool {
	switch name {
	case "glob", "grep", "ls", "list", "listdir", "listdirectory", "listfiles", "findbyname", "findfiles", "websearch", "codesearch":
		return true
	}
	return strings.Contains(name, "search")
}

// writing returns the kind of a tool that changes files.
func writing(name string) Kind {
	switch {
	case strings.Contains(name, "patch"):
		return Patch
	case strings.Contains(name, "delete"), strings.Contains(name, "remove"):
		return Delete
	case strings.Contains(name, "edit"), strings.Contains(name, "replace"), strings.Contains(name, "insert"):
		return Edit
	}
	return Write
}

// plainName returns a tool's name in lower case without marks, because runtimes write read_file and
// ReadFile.
func plainName(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name))
}

// shell adds the facts of a call of a shell tool.
func (a *Action) shell(e *schema.Event) {
	if name := plainName(e.ToolName); strings.Contains(name, "powershell") || name == "cmd" || name == "cmdexe" {
		a.unparsed("scripts of PowerShell and cmd are not parsed")
	}
	var input map[string]any
	if len(e.ToolInput) > 0 && schema.Unmarshal(e.ToolInput, &input) != nil {
		a.unparsed("its input is not an object")
		return
	}
	var facts struct {
		Command string `json:"command"`
		Cwd     string `json:"cwd"`
	}
	if len(e.ToolArgs) > 0 {
		_ = schema.Unmarshal(e.ToolArgs, &facts) // without facts, the input counts
	}
	command, ok := commandOf(input)
	if !ok {
		command = facts.Command
	}
	if command == "" {
		a.unparsed("it names no command that can be read")
		return
	}
	folder := e.Cwd
	if facts.Cwd != "" {
		folder = path.Join(folder, facts.Cwd)
		if path.IsAbs(facts.Cwd) {
			folder = facts.Cwd
		}
	}
	a.script(command, folder)
}

// commandOf returns the command in a shell tool's input: a text, or a list of words.
func commandOf(input map[string]any) (string, bool) {
	for _, name := range []string{"command", "cmd", "CommandLine", "commandLine", "command_line", "script"} {
		switch v := input[name].(type) {
		case string:
			return v, true
		case []any:
			return quoted(v)
		}
	}
	return "", false
}

// quoted returns a script that runs a list of words.
func quoted(list []any) (string, bool) {
	words := make([]string, len(list))
	for i, v := range list {
		word, ok := v.(string)
		if !ok {
			return "", false
		}
		text, err := syntax.Quote(word, syntax.LangBash)
		if err != nil {
			return "", false
		}
		words[i] = text
	}
	return strings.Join(words, " "), true
}

// tool adds the facts of a call of any other tool.
func (a *Action) tool(e *schema.Event) {
	args := e.ToolArgs
	if len(args) == 0 {
		_, args = schema.ToolFacts(e.Runtime, e.ToolName, e.ToolInput)
	}
	var facts struct {
		Paths []string `json:"paths"`
		URL   string   `json:"url"`
	}
	if len(args) > 0 {
		_ = schema.Unmarshal(args, &facts) // facts of other kinds have other members
	}
	a.urls(facts.URL)
	for _, p := range facts.Paths {
		a.toolPath(e, p)
	}
	a.values(e, e.ToolInput)
}

// toolPath adds a path of a tool's input.
func (a *Action) toolPath(e *schema.Event, p string) {
	access := WriteAccess
	switch a.Kind {
	case Read, Search:
		access = ReadAccess
	case Delete:
		access = DeleteAccess
	}
	if !absolute(p) && e.Cwd != "" {
		p = joined(e.Cwd, p)
	}
	a.path(Path{Path: cleaned(p), Access: access})
}

// values adds the paths and hosts that a tool's input names.
func (a *Action) values(e *schema.Event, input jsontext.Value) {
	var v any
	if len(input) == 0 {
		return
	}
	if schema.Unmarshal(input, &v) != nil {
		a.unparsed("its input is not valid JSON")
		return
	}
	a.value(e, "", v, 0)
}

// value adds the paths and hosts in a value. Members with the name of a path are paths, and texts may
// have URLs, unless they are the content of a file.
func (a *Action) value(e *schema.Event, name string, v any, depth int) {
	if depth > maxDepth {
		a.unparsed("its input is nested too deep")
		return
	}
	switch v := v.(type) {
	case string:
		switch {
		case isPathName(name) && v != "" && !strings.Contains(v, "://"):
			a.toolPath(e, v)
		case a.Kind == Patch:
			for _, p := range schema.PatchedFiles(v) {
				a.toolPath(e, p)
			}
		case a.Kind != Write && a.Kind != Edit:
			a.urls(v)
		}
	case []any:
		for _, item := range v {
			a.value(e, name, item, depth+1)
		}
	case map[string]any:
		for _, member := range slices.Sorted(maps.Keys(v)) {
			a.value(e, member, v[member], depth+1)
		}
	}
}

// isPathName reports whether a member has a path as its value, by the end of its name.
func isPathName(name string) bool {
	word := plainName(name)
	for _, end := range []string{"path", "paths", "file", "files", "filename", "dir", "directory", "folder"} {
		if strings.HasSuffix(word, end) {
			return !strings.HasSuffix(word, "xpath") && !strings.HasSuffix(word, "jsonpath")
		}
	}
	return false
}
