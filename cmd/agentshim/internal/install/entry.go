package install

import (
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/probe"
	"github.com/hookfabric/hookfabric/schema"
)

// A group is an entry of a runtime that selects hooks by a matcher.
type group struct {
	Matcher string `json:"matcher,omitzero"`
	Hooks   []any  `json:"hooks"`
}

// A handler is one hook. It has the members of all runtimes.
type handler struct {
	Type       string            `json:"type,omitzero"`
	Name       string            `json:"name,omitzero"`
	Command    string            `json:"command,omitzero"`
	Bash       string            `json:"bash,omitzero"`
	Args       []string          `json:"args,omitzero"`
	URL        string            `json:"url,omitzero"`
	Headers    map[string]string `json:"headers,omitzero"`
	Allowed    []string          `json:"allowedEnvVars,omitzero"`
	Timeout    int               `json:"timeout,omitzero"`
	TimeoutSec int               `json:"timeoutSec,omitzero"`
	OnFailure  string            `json:"onFailure,omitzero"`
	FailClosed bool              `json:"failClosed,omitzero"`
}

// TokenVariable holds the daemon's token if the runtime asks the daemon itself.
const TokenVariable = "HOOKFABRIC_TOKEN"

// overHTTP returns a hook with which the runtime asks the daemon itself.
func (r *Request) overHTTP(e event) handler {
	q := url.Values{}
	if r.Hook.Agent != "" {
		q.Set("agent", r.Hook.Agent)
	}
	if u := r.Hook.Unreachable; u != "" {
		q.Set("unreachable", u)
	} else if r.Scope == Managed {
		q.Set("unreachable", "deny")
	}
	u := strings.TrimSuffix(r.Hook.URL, "/") + "/hook/" + r.Runtime + "/" + e.name
	if len(q) > 0 {
		u += "?" + q.Encode()
	}
	// Hook-Left tells the daemon the time limit, within which it answers.
	return handler{Type: "http", URL: u, Headers: map[string]string{"Authorization": "Bearer $" + TokenVariable, "Hook-Left": strconv.Itoa(e.seconds(&r.Hook)) + "s"},
		Allowed: []string{TokenVariable}, Timeout: e.seconds(&r.Hook)}
}

// Blocking returns the first version of Claude Code that accepts onFailure, and can block failed calls.
func Blocking() probe.Version { return probe.Version{2, 1, 295} }

func claudeEntry(r *Request, e event) any {
	h := handler{Type: "command", Command: r.Hook.Shim, Args: r.arguments(e), Timeout: e.seconds(&r.Hook)}
	if r.Scope == Project || e.gate && r.Version.Before(Blocking()) {
		h.Command, h.Args = r.line(e, true), nil
	}
	if r.Hook.URL != "" && e.name != "SessionStart" { // SessionStart takes commands only
		h = r.overHTTP(e)
	}
	if e.gate && !r.Version.Before(Blocking()) {
		h.OnFailure = "block"
	}
	return group{Matcher: matcher(e, "*"), Hooks: []any{h}}
}

func codexEntry(r *Request, e event) any {
	return group{Matcher: matcher(e, "*"), Hooks: []any{handler{Type: "command", Command: r.line(e, true), Timeout: e.seconds(&r.Hook)}}}
}

// geminiName is the name by which users switch agentshim's hooks off in Gemini CLI.
const geminiName = shimName

func geminiEntry(r *Request, e event) any {
	// In milliseconds, unlike all other runtimes.
	h := handler{Type: "command", Name: geminiName, Command: r.line(e, false), Timeout: int(e.timeout(&r.Hook).Milliseconds())}
	if r.Scope == Managed {
		h.Name = "" // hooksConfig.disabled of any layer switches hooks off by their names
	}
	return group{Matcher: matcher(e, ".*"), Hooks: []any{h}}
}

func qwenEntry(r *Request, e event) any {
	h := handler{Type: "command", Name: "agentshim", Command: r.line(e, true)}
	// The runtime takes numbers from 1000 on for milliseconds.
	if h.Timeout = e.seconds(&r.Hook); h.Timeout >= 1000 {
		h.Timeout *= 1000
	}
	return group{Hooks: []any{h}}
}

func cursorEntry(r *Request, e event) any {
	return handler{Command: r.line(e, false), Timeout: e.seconds(&r.Hook), FailClosed: e.gate}
}

func copilotEntry(r *Request, e event) any {
	return handler{Type: "command", Bash: r.line(e, false), TimeoutSec: e.seconds(&r.Hook)}
}

func agyEntry(r *Request, e event) any {
	h := handler{Type: "command", Command: r.line(e, false), Timeout: e.seconds(&r.Hook)}
	if !e.tool {
		return h // one entry of a wrong shape would invalidate the whole file
	}
	return group{Matcher: "*", Hooks: []any{h}}
}

func matcher(e event, all string) string {
	if e.tool {
		return all
	}
	return ""
}

// An Owned is one of agentshim's own hooks in a configuration.
type Owned struct {
	// Event is the runtime's name of the event.
	Event string
	// Name is the hook's name in the runtime; empty: the name is the command.
	Name string
	// Command is the command that the runtime runs; empty: the runtime asks URL.
	Command []string
	URL     string
	// Line is the command line that the runtime passes to a shell; empty: it starts the command itself.
	Line string
	// Timeout is the number in the configuration; 0: it has no timeout.
	Timeout int
	// Gate: a hook can refuse something at the event.
	Gate bool
	// Blocks: the runtime refuses calls when the hook fails. Denies: Line does when the program is missing.
	Blocks, Denies bool
	// Differs names members that an installation would write in another way, so that calls may pass.
	Differs []string
}

// owned reads a hook, and reports whether it is one of agentshim's for that runtime.
func owned(v jsontext.Value, runtime, event string) (Owned, bool) {
	var h handler
	if v.Kind() != '{' || schema.Unmarshal(v, &h) != nil {
		return Owned{}, false
	}
	o := Owned{Event: event, Name: h.Name, Timeout: max(h.Timeout, h.TimeoutSec), Blocks: h.OnFailure == "block" || h.FailClosed}
	if h.URL != "" {
		u, err := url.Parse(h.URL)
		o.URL = h.URL
		return o, err == nil && u.Path == "/hook/"+runtime+"/"+event && slices.Contains(h.Allowed, TokenVariable)
	}
	if o.Command = append([]string{h.Command}, h.Args...); len(h.Args) == 0 {
		o.Line = h.Command + h.Bash // a hook has one of them
		words, ok := split(bare(o.Line))
		if !ok {
			return o, false
		}
		o.Command = words
		o.Denies = strings.HasSuffix(o.Line, andRefuse)
	}
	return o, ourLine(o.Command, runtime)
}

// ourLine reports whether a command line runs the shim for the runtime.
func ourLine(words []string, runtime string) bool {
	if len(words) < 4 || words[1] != "hook" {
		return false
	}
	name := strings.TrimSuffix(filepath.Base(words[0]), ".exe")
	i := slices.Index(words, "--runtime")
	return strings.HasPrefix(name, shimName) && i > 0 && i+1 < len(words) && words[i+1] == runtime
}

// Flag returns the value of a flag in the command line; empty: the flag is missing.
func (o *Owned) Flag(flag string) string {
	for i, word := range o.Command {
		name, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(o.Command) {
			value = o.Command[i+1]
		}
		if name == flag {
			return value
		}
	}
	return ""
}

// LineWith returns Line with more arguments for the shim.
func (o *Owned) LineWith(words ...string) string {
	command := bare(o.Line)
	all := []string{command}
	for _, w := range words {
		all = append(all, Quote(w))
	}
	return strings.Replace(o.Line, command, strings.Join(all, " "), 1)
}

// Ours reports whether a shell's command line runs the shim for the runtime.
func Ours(line, runtime string) bool {
	words, ok := split(bare(line))
	return ok && ourLine(words, runtime)
}
