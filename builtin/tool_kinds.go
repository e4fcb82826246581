package builtin

import (
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// toolKind is what a tool does with the paths in its input.
type toolKind int

// The kinds. An unknown tool counts as the most dangerous kind, writeTool.
const (
	writeTool toolKind = iota
	readTool
	patchTool
	shellTool
)

// A fileTool describes a tool.
type fileTool struct {
	kind toolKind
	// deep means that it uses everything below a folder. roams means that without a path
	// it starts in the agent's folder. matches means that its member pattern is a pattern
	// of paths. globs means that its paths may be patterns.
	deep, roams, matches, globs bool
	// certain means that it uses files, so its input must name some.
	certain bool
}

// fileTools are the tools of common runtimes and servers, by their names as [wordOf]
// returns them.
var fileTools = map[string]fileTool{
	"read": {kind: readTool}, "readfile": {kind: readTool}, "readtextfile": {kind: readTool}, "readmediafile": {kind: readTool},
	"view": {kind: readTool}, "viewfile": {kind: readTool}, "viewimage": {kind: readTool}, "notebookread": {kind: readTool},
	"getfileinfo": {kind: readTool}, "readmultiplefiles": {kind: readTool}, "readmanyfiles": {kind: readTool, globs: true, deep: true},

	"ls": {kind: readTool, roams: true}, "list": {kind: readTool, roams: true}, "listdir": {kind: readTool, roams: true},
	"listfiles": {kind: readTool, roams: true}, "listdirectory": {kind: readTool, roams: true},
	"listdirectorywithsizes": {kind: readTool, roams: true}, "directorytree": {kind: readTool, roams: true},
	"glob": {kind: readTool, roams: true, matches: true}, "findfiles": {kind: readTool, roams: true, matches: true},
	"findbyname":  {kind: readTool, roams: true, matches: true},
	"searchfiles": {kind: readTool, roams: true, matches: true},
	"grep":        {kind: readTool, roams: true, deep: true}, "grepsearch": {kind: readTool, roams: true, deep: true},
	"searchfilecontent": {kind: readTool, roams: true, deep: true},

	"write": {}, "writefile": {}, "writetofile": {}, "edit": {}, "editfile": {}, "multiedit": {}, "notebookedit": {}, "replace": {},
	"replacefilecontent": {}, "create": {}, "createfile": {}, "createdirectory": {}, "strreplace": {}, "strreplaceeditor": {},
	"strreplacebasededittool": {}, "insert": {},
	"movefile": {deep: true}, "copyfile": {deep: true}, "renamefile": {deep: true}, "deletefile": {deep: true},
	"removefile": {deep: true}, "delete": {deep: true},

	"applypatch": {kind: patchTool}, "patch": {kind: patchTool},

	"bash": {kind: shellTool}, "sh": {kind: shellTool}, "shell": {kind: shellTool}, "powershell": {kind: shellTool}, "exec": {kind: shellTool},
	"execcommand": {kind: shellTool}, "localshell": {kind: shellTool}, "runshellcommand": {kind: shellTool}, "runcommand": {kind: shellTool},
	"runinterminal": {kind: shellTool}, "runterminalcmd": {kind: shellTool}, "execute": {kind: shellTool}, "executecommand": {kind: shellTool},
}

// toolOf describes an event's tool, by its name or else by its kind.
func toolOf(e *schema.Event) fileTool {
	if t, ok := fileTools[wordOf(e.ToolName)]; ok {
		t.certain = true
		return t
	}
	switch e.ToolKind { // for the runtime's own tools, the shim knows better
	case schema.KindShell:
		return fileTool{kind: shellTool}
	case schema.KindRead:
		return fileTool{kind: readTool, deep: true, certain: true}
	case schema.KindWrite:
		return fileTool{deep: true, certain: true}
	}
	if t, certain, ok := serverTool(serversName(e)); ok {
		t.certain = certain
		return t
	}
	return fileTool{deep: true}
}

// serversName returns a server's own name for its tool: from the shim, else the last part
// of the runtime's name.
func serversName(e *schema.Event) string {
	if e.ToolKind == schema.KindMCP {
		var args struct {
			Tool string `json:"tool"`
		}
		if len(e.ToolArgs) > 0 && schema.Unmarshal(e.ToolArgs, &args) == nil && args.Tool != "" {
			return args.Tool
		}
	}
	return schema.ToolPart(e.ToolName)
}

// serverTool describes a tool of a server, whose name may have the server's name as a
// prefix. A one-word name is not certain: it may edit something that is not a file.
func serverTool(name string) (t fileTool, certain, ok bool) {
	for rest := name; rest != ""; {
		if t, ok := fileTools[wordOf(rest)]; ok && (rest == name || strings.ContainsAny(rest, "_-")) {
			return t, strings.ContainsAny(rest, "_-"), true
		}
		i := strings.IndexAny(rest, "_-")
		if i < 0 {
			break
		}
		rest = rest[i+1:]
	}
	return fileTool{}, false, false
}
