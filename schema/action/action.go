package action

import (
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// The limits of the work for one call. Beyond them, [Action.Unparsed] has the reason.
const (
	maxScript   = 64 << 10 // bytes of a command
	maxDepth    = 50       // scripts inside scripts, and statements inside statements
	maxSteps    = 20_000   // statements, words and their alternatives
	maxCommands = 1000
	maxPaths    = 1000
)

// A Kind is what a tool does, the same in all runtimes.
type Kind string

// The kinds of tool calls.
const (
	Shell    Kind = "shell"
	Read     Kind = "read"
	Write    Kind = "write"
	Edit     Kind = "edit"
	Patch    Kind = "patch"
	Delete   Kind = "delete"
	Fetch    Kind = "fetch"
	Search   Kind = "search"
	MCP      Kind = "mcp"
	Subagent Kind = "subagent"
	Other    Kind = "other"
)

// An Action has the facts of a tool call. Its zero value is a call without facts.
type Action struct {
	Kind Kind `json:"kind"`
	// Commands are the commands of a shell tool, in the order of the script. A command in both
	// branches of a condition is in it twice.
	Commands []Command `json:"commands,omitzero"`
	// Code is the inline code for interpreters, such as that of python -c.
	Code []Code `json:"code,omitzero"`
	// Paths are the files and folders that the call names.
	Paths []Path `json:"paths,omitzero"`
	// Hosts are the names and addresses of the hosts that the call names, in lower case.
	Hosts []string `json:"hosts,omitzero"`
	// Unparsed is the reason why the facts are incomplete; empty: they are complete.
	Unparsed string `json:"unparsed,omitzero"`
}

// A Command is one command that a shell tool runs, without its wrappers.
type Command struct {
	// Name is the last element of the program's path, such as rm. It has the text of the script if
	// the name is known only at run time.
	Name string `json:"name"`
	// Args are the arguments. Parts that are known only at run time have the text of the script,
	// such as $DIR.
	Args []string `json:"args,omitzero"`
	// Flags are the names of the options in Args: rf of -rf gives r and f, and --force=yes gives force.
	Flags []string `json:"flags,omitzero"`
	// Wrappers are the programs that run the command, from the outside in, such as sudo, xargs,
	// "bash -c" and "find -exec".
	Wrappers []string `json:"wrappers,omitzero"`
	// Env are the variables that are set for this command, as NAME=value.
	Env []string `json:"env,omitzero"`
	// Redirects are the files that are its input and output.
	Redirects []Redirect `json:"redirects,omitzero"`
	// PipeTo is the name of the next command of the pipeline; empty: there is none.
	PipeTo string `json:"pipe_to,omitzero"`
	// Heredoc is its constant input from a here-document, a here-string or a constant pipe.
	Heredoc string `json:"heredoc,omitzero"`
	// Dynamic means that what runs is known only at run time: the name is expanded, or a shell
	// reads its script from elsewhere.
	Dynamic bool `json:"dynamic,omitzero"`
	// Remote means that it runs on another machine or in a container.
	Remote bool `json:"remote,omitzero"`
}

// A Redirect is a file that a command uses as its input or output.
type Redirect struct {
	Op     string `json:"op"` // such as > and <
	Target string `json:"target"`
	Access Access `json:"access"`
}

// Code is inline code for an interpreter.
type Code struct {
	Language string `json:"language"`
	Text     string `json:"text"`
}

// An Access is what a call does with a path.
type Access string

// The kinds of access.
const (
	ReadAccess    Access = "read"
	WriteAccess   Access = "write"
	DeleteAccess  Access = "delete"
	ExecuteAccess Access = "execute"
)

// A Path is a file or a folder that a call names.
type Path struct {
	// Path is clean, and absolute if the working directory is known. It starts with ~ if it is in the
	// home folder of the user. It may have patterns such as *.
	Path   string `json:"path"`
	Access Access `json:"access"`
	// Remote means that it is on another machine or in a container.
	Remote bool `json:"remote,omitzero"`
	// Inside means that it is below the working folder for certain. The folder itself is not.
	Inside bool `json:"inside,omitzero"`
	// Git means that it is, or may be, a .git folder or something in it.
	Git bool `json:"git,omitzero"`
}

// Parse returns the facts of a tool call. It never fails: what it cannot parse is in Unparsed.
func Parse(e *schema.Event) *Action {
	a := &Action{Kind: kindOf(e)}
	if a.Kind == Shell {
		a.shell(e)
	} else {
		a.tool(e)
	}
	a.locate(e.Cwd)
	return a
}

// Script returns the facts of a shell script that runs in a folder; an empty folder is unknown.
func Script(text, folder string) *Action {
	a := &Action{Kind: Shell}
	a.script(text, folder)
	a.locate(folder)
	return a
}

// unparsed records the first reason why facts are incomplete.
func (a *Action) unparsed(why string) {
	if a.Unparsed == "" {
		a.Unparsed = why
	}
}

// path adds a path.
func (a *Action) path(p Path) {
	switch {
	case p.Path == "" || slices.Contains(a.Paths, p):
	case len(a.Paths) == maxPaths:
		a.unparsed("it names too many paths")
	default:
		a.Paths = append(a.Paths, p)
	}
}

// host adds a host.
func (a *Action) host(name string) {
	if name != "" && !slices.Contains(a.Hosts, name) {
		a.Hosts = append(a.Hosts, name)
	}
}
