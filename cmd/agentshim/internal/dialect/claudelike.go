package dialect

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// claudelike is the common part of Claude Code's protocol and its children: one JSON object with
// snake_case members in, and one with hookSpecificOutput out. The runtimes share the members, and
// differ in what they obey.
type claudelike struct {
	runtime string
	moments []Moment
	// strict: the runtime drops a whole answer for one unknown part, and obeys a rewrite only
	// with an allow.
	strict bool
}

// permissionRequest is the moment at which a runtime is about to ask a person about a tool call. The
// fabric treats it as that tool call.
const permissionRequest = "PermissionRequest"

// payload is what the runtimes send. Members that decide nothing may have any type, so that a new
// release which changes one causes no error.
type payload struct {
	Event     string         `json:"hook_event_name"`
	Session   string         `json:"session_id"`
	Cwd       string         `json:"cwd"`
	Tool      string         `json:"tool_name"`
	Input     jsontext.Value `json:"tool_input"`
	UseID     string         `json:"tool_use_id"`
	Output    jsontext.Value `json:"tool_response"`
	Result    jsontext.Value `json:"tool_result"` // Copilot's
	Error     jsontext.Value `json:"error"`
	Prompt    *string        `json:"prompt"`
	Message   jsontext.Value `json:"last_assistant_message"`
	Subagent  string         `json:"agent_id"`
	Parent    string         `json:"parent_agent_id"` // Copilot's, whose subagents have sessions of their own
	Usage     jsontext.Value `json:"token_usage"`
	Server    jsontext.Value `json:"mcp_server"`
	History   jsontext.Value `json:"transcript_path"`
	PromptID  jsontext.Value `json:"prompt_id"`
	TurnID    jsontext.Value `json:"turn_id"`
	CallID    jsontext.Value `json:"tool_call_id"`
	Timestamp jsontext.Value `json:"timestamp"`
	Model     jsontext.Value `json:"model"`

	Mode     jsontext.Value `json:"permission_mode"`
	Kind     jsontext.Value `json:"agent_type"`
	Active   jsontext.Value `json:"stop_hook_active"`
	Source   jsontext.Value `json:"source"`
	Reason   jsontext.Value `json:"reason"`
	Status   jsontext.Value `json:"status"`
	Trigger  jsontext.Value `json:"trigger"`
	Camel    jsontext.Value `json:"sessionId"` // Copilot's other form
	HookName jsontext.Value `json:"hookName"`

	CamelTool  jsontext.Value `json:"toolName"`
	CamelInput jsontext.Value `json:"toolInput"`
}

// Moments returns the runtime's events.
func (d claudelike) Moments() []Moment { return d.moments }

// Decode reads the runtime's payload.
func (d claudelike) Decode(in Input) (*Call, error) {
	c, p, err := d.read(in)
	if err == nil && c.Moment.Event != "" {
		if d.runtime == "qwen" { // Qwen Code passes it to the process as well
			p.Subagent = first(p.Subagent, in.env("QWEN_CODE_AGENT_ID"))
		}
		err = d.fill(c, p)
	}
	return c, err
}

// read determines the event of a payload. The call is never nil.
func (d claudelike) read(in Input) (*Call, *payload, error) {
	c := &Call{Moment: in.Moment, Event: schema.Event{HookType: in.Moment.Event}}
	data := trimmed(in.Payload)
	var name string
	glance(data, map[string]*string{"hook_event_name": &name, "session_id": &c.Event.SessionID, "tool_name": &c.Event.ToolName, "cwd": &c.Event.Cwd,
		"tool_use_id": &c.Event.ToolUseID, "agent_id": &c.Subagent})
	named, known := d.named(name)
	if known && (in.Moment.Name == "" || graver(named, in.Moment)) {
		c.Moment, c.Event.HookType = named, named.Event
	}
	if t := c.Event.HookType; t != "" && !t.HasTool() {
		c.Event.ToolName, c.Event.ToolUseID = "", ""
	}
	if k := jsontext.Value(data).Kind(); k != '{' {
		return c, nil, fmt.Errorf("the payload on stdin is %s, but %s sends one JSON object to a hook", kindOf(data), d.runtime)
	}
	p := new(payload)
	if err := schema.Unmarshal(data, p); err != nil {
		return c, nil, fmt.Errorf("reading the payload on stdin as one of %s: %w; name the runtime that runs this hook with --runtime", d.runtime, err)
	}
	c.Payload = data
	return c, p, d.disagrees(in.Moment, p, known)
}

// kindOf names the kind of a payload that is not a JSON object.
func kindOf(data []byte) string {
	if len(data) == 0 {
		return "empty"
	}
	return schema.KindName(jsontext.Value(data).Kind())
}

func (d claudelike) named(name string) (Moment, bool) {
	for _, m := range d.moments {
		if m.Name == name {
			return m, true
		}
	}
	return Moment{}, false
}

// graver reports whether a can refuse something and b cannot. If the payload and the command line
// disagree, the graver moment counts, so that a guarded call does not pass as an unguarded event.
func graver(a, b Moment) bool {
	return a.Can[Deny] != Impossible && b.Can[Deny] == Impossible
}

// disagrees returns an error if the payload is not one for a hook at the moment m of this runtime.
func (d claudelike) disagrees(m Moment, p *payload, known bool) error {
	if other := p.other(d.runtime); other != "" {
		return fmt.Errorf("the payload on stdin comes from %s, but --runtime is %s; change the hook's command line to --runtime %s",
			other, d.runtime, other)
	}
	switch {
	case p.Event == "" && m.Name == "":
		return fmt.Errorf("the payload on stdin names no event; write --event, such as --event %s", d.moments[0].Name)
	case p.Event == "":
		return fmt.Errorf("the payload on stdin has no hook_event_name, which %s always sends; name the runtime that runs this hook with --runtime", d.runtime)
	case m.Name != "" && p.Event != m.Name:
		return fmt.Errorf("the payload on stdin has the event %.64q, but --event is %s; configure the hook at the event that --event names", p.Event, m.Name)
	case !known:
		return fmt.Errorf("the payload on stdin has the event %.64q, which %s does not have; name the runtime that runs this hook with --runtime", p.Event, d.runtime)
	}
	return nil
}

// other returns the name of another runtime that sends such payloads; empty: the payload is ours, or
// its origin is uncertain. A member that only ours sends counts most: a new release with more members
// must not pass for another runtime.
func (p *payload) other(ours string) string {
	has := func(v jsontext.Value) bool { return len(v) > 0 }
	marks := map[string]bool{"claude": has(p.PromptID), "codex": has(p.TurnID), "qwen": has(p.Timestamp) || has(p.CallID)}
	switch {
	case has(p.Camel) || has(p.HookName):
		return "copilot"
	case p.Event == "BeforeTool" || p.Event == "AfterTool" || p.Event == "BeforeAgent" || p.Event == "AfterAgent" || p.Event == "BeforeModel":
		return "gemini"
	case has(p.CallID) && ours != "qwen":
		return "qwen"
	case marks[ours]:
		return ""
	case marks["codex"]:
		return "codex"
	case marks["claude"]:
		return "claude"
	}
	return ""
}

// fill translates the payload into the fabric's event.
func (d claudelike) fill(c *Call, p *payload) error {
	e := &c.Event
	e.SessionID, e.Cwd, e.HistoryRef, c.Subagent = p.Session, p.Cwd, word(p.History), p.Subagent
	if c.Form == inCopilot && p.Parent != "" {
		c.Parent, e.SessionID = p.Parent, p.Parent
	}
	if c.inParent() {
		return nil
	}
	d.label(c, p)
	switch e.HookType {
	case schema.PreToolUse, schema.PostToolUse, schema.ToolError:
		return d.tool(c, p)
	case schema.UserPromptSubmit:
		return c.prompted(d.runtime, p.Prompt)
	case schema.BeforeFinalResponse:
		e.Message = present(p.Message)
	case schema.AfterLLMCall:
		e.Error = Text(present(p.Error))
	}
	return nil
}

// tool reads the members of the events about one tool call.
func (d claudelike) tool(c *Call, p *payload) error {
	e := &c.Event
	e.ToolName, e.ToolUseID, e.ToolInput = p.Tool, p.UseID, present(p.Input)
	if e.ToolName == "" {
		return fmt.Errorf("the payload on stdin has no tool_name, which %s sends at %s", d.runtime, c.Moment.Name)
	}
	if e.ToolInput == nil && e.HookType == schema.PreToolUse || e.ToolInput != nil && e.ToolInput.Kind() != '{' {
		return fmt.Errorf("tool_input in the payload on stdin is %s; it must be a JSON object", kindOf(e.ToolInput))
	}
	e.ToolKind, e.ToolArgs = normalise(first(e.Runtime, d.runtime), e.ToolName, e.ToolInput)
	serverOf(e, p)
	if e.HookType == schema.PreToolUse {
		c.keyed(before)
		return nil
	}
	c.keyed(after)
	if e.ToolOutput = present(p.Output); e.ToolOutput == nil {
		e.ToolOutput = present(p.Result)
	}
	if e.HookType == schema.ToolError {
		e.Error = Text(present(p.Error))
	}
	return nil
}

// serverOf sets the facts of an MCP tool from the payload's server, which is more exact than the
// tool's name.
func serverOf(e *schema.Event, p *payload) {
	var server struct {
		Name string `json:"name"`
	}
	if p.Server.Kind() != '{' || schema.Unmarshal(p.Server, &server) != nil || server.Name == "" {
		return
	}
	if tool, ok := strings.CutPrefix(e.ToolName, "mcp__"+server.Name+"__"); ok {
		e.ToolKind, e.ToolArgs = schema.KindMCP, schema.MCPFacts(server.Name, tool)
	}
}

// label adds the members that policies may need and the event has no field for.
func (d claudelike) label(c *Call, p *payload) {
	labels := map[string]string{}
	put := func(name, value string) {
		if value != "" {
			labels[name] = clip(value)
		}
	}
	put("permission_mode", word(p.Mode))
	put("model", word(p.Model))
	put("source", word(p.Source))
	put("reason", word(p.Reason))
	put("status", word(p.Status))
	if p.Active.Kind() == 't' {
		put(putOff, "true")
	}
	if p.Subagent != "" {
		put("subagent", p.Subagent)
		put("subagent_type", word(p.Kind))
	}
	if first, ok := At(d, c.Moment.Event); ok && first.Name != c.Moment.Name {
		put("moment", c.Moment.Name) // the event is named for another moment
	}
	var usage map[string]jsontext.Value
	if p.Usage.Kind() == '{' && schema.Unmarshal(p.Usage, &usage) == nil && len(usage) <= mostCounts {
		for name, count := range usage {
			if n, err := strconv.ParseInt(string(count), 10, 64); err == nil {
				put(clip(name), strconv.FormatInt(n, 10))
			}
		}
	}
	if len(labels) > 0 {
		c.Event.Labels = labels
	}
}

// mostCounts limits the token counts in the labels; a runtime has about six.
const mostCounts = 16

// clip limits the length of a label.
func clip(s string) string { return s[:min(len(s), 256)] }

// word returns a JSON string; empty: the value has another kind.
func word(v jsontext.Value) string {
	var s string
	if v.Kind() != '"' || schema.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// present returns v; nil: v is null.
func present(v jsontext.Value) jsontext.Value {
	if len(v) == 0 || v.Kind() == 'n' {
		return nil
	}
	return v
}
