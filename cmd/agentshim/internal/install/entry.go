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

// A group is an entry of the runtimes that choose by a matcher which of several
// hooks run.
type group struct {
	Matcher string `json:"matcher,omitzero"`
	Hooks   []any  `json:"hooks"`
}

// A handler is one hook, in the members of all runtimes.
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

// TokenVariable is the environment variable that holds the daemon's token where
// the runtime asks the daemon itself. The token is in no configuration.
const TokenVariable = "HOOKFABRIC_TOKEN"

// overHTTP is a hook by which the runtime asks the daemon itself.
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
	// The daemon answers before the time that it is told is over.
	return handler{Type: "http", URL: u, Headers: map[string]string{"Authorization": "Bearer $" + TokenVariable, "Hook-Left": strconv.Itoa(e.seconds(&r.Hook)) + "s"},
		Allowed: []string{TokenVariable}, Timeout: e.seconds(&r.Hook)}
}

// Blocking is the first version of Claude Code that can be told to block where a
// hook fails; older ones refuse the word.
func Blocking() probe.Version { return probe.Version{2, 1, 295} }

func claudeEntry(r *Request, e event) any {
	h := handler{Type: "command", Command: r.Hook.Shim, Args: r.arguments(e), Timeout: e.seconds(&r.Hook)}
	if r.Scope == Project || e.gate && r.Version.Before(Blocking()) {
		h.Command, h.Args = r.line(e, true), nil
	}
	if r.Hook.URL != "" && e.name != "SessionStart" { // that one takes commands only
		h = r.overHTTP(e)
	}
	if e.gate && !r.Version.Before(Blocking()) {
		h.OnFailure = "block"
	}
	return group{Matcher: matcher(e, "*"), Hooks: []any{h}}
}

func codexEntry(r *Request, e event) any {
	return group{Matcher: matcher(e, "*"), Hooks: []any{handler{Type: "command", Command: r.line(e, Open(r.Runtime)), Timeout: e.seconds(&r.Hook)}}}
}

// geminiName is the name by which users switch their own hooks off in Gemini CLI.
const geminiName = shimName

func geminiEntry(r *Request, e event) any {
	// In milliseconds, unlike everybody else.
	h := handler{Type: "command", Name: geminiName, Command: r.line(e, false), Timeout: int(e.timeout(&r.Hook).Milliseconds())}
	if r.Scope == Managed {
		h.Name = "" // a name is what hooksConfig.disabled of any layer switches hooks off by
	}
	return group{Matcher: matcher(e, ".*"), Hooks: []any{h}}
}

func qwenEntry(r *Request, e event) any {
	h := handler{Type: "command", Name: "agentshim", Command: r.line(e, Open(r.Runtime))}
	// Numbers from 1000 on are milliseconds.
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
		return h // one wrong shape, and the whole file counts for nothing
	}
	return group{Matcher: "*", Hooks: []any{h}}
}

func matcher(e event, all string) string {
	if e.tool {
		return all
	}
	return ""
}

// An Owned is one of our own hooks, as it stands in a configuration.
type Owned struct {
	// Event is the runtime's.
	Event string
	// Name is what the runtime calls the hook; empty: as its command.
	Name string
	// Command is what the runtime runs; empty: it asks URL.
	Command []string
	URL     string
	// Line is the command as the runtime gives it to a shell; empty: it starts it
	// itself.
	Line string
	// Timeout is the number that the configuration says; 0: none.
	Timeout int
	// Gate: something can still be refused at the event.
	Gate bool
	// Blocks: the runtime is told to refuse calls where the hook fails. Denies: Line refuses
	// them where the program is missing.
	Blocks, Denies bool
	// Differs names what an installation would write otherwise, so that the hook may not be
	// asked about calls, or its answer not count.
	Differs []string
}

// owned reads a hook, if it is one of ours for that runtime.
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

// Flag is what the command line says for a flag; empty: nothing.
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

// LineWith is Line with more words for the shim.
func (o *Owned) LineWith(words ...string) string {
	command := bare(o.Line)
	all := []string{command}
	for _, w := range words {
		all = append(all, Quote(w))
	}
	return strings.Replace(o.Line, command, strings.Join(all, " "), 1)
}

// Ours reports whether a command line, as a shell takes it, runs the shim for
// the runtime.
func Ours(line, runtime string) bool {
	words, ok := split(bare(line))
	return ok && ourLine(words, runtime)
}
