package dialect

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// claudelike is the protocol of Claude Code and its children: one JSON object with snake_case members in, and
// one with hookSpecificOutput out. They share the members, and differ in what they obey.
type claudelike struct {
	runtime string
	moments []Moment
	// strict: the runtime drops an answer with one unknown part, and obeys a rewrite only with an allow.
	strict bool
}

// permissionRequest is the moment at which a runtime is about to ask a person about a tool call.
const permissionRequest = "PermissionRequest"

// payload is what the runtimes send. Members that decide nothing may have any type in a new release.
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
			p.Subagent = cmp.Or(p.Subagent, in.env("QWEN_CODE_AGENT_ID"))
		}
		err = d.fill(c, p)
	}
	return c, err
}

// read reads a payload as far as possible, and determines its event.
func (d claudelike) read(in Input) (*Call, *payload, error) {
	c, p := begun(in), new(payload)
	e := &c.Event
	err := c.open(d, in, d.runtime, "hook_event_name", p, map[string]*string{"session_id": &e.SessionID, "tool_name": &e.ToolName, "cwd": &e.Cwd,
		"tool_use_id": &e.ToolUseID, "agent_id": &c.Subagent})
	if c.Payload != nil {
		err = d.foreign(p, err)
	}
	return c, p, err
}

// foreign returns an error if another runtime sent the payload, and else err.
func (d claudelike) foreign(p *payload, err error) error {
	if other := p.other(d.runtime); other != "" {
		return fmt.Errorf("the payload on stdin comes from %s, but --runtime is %s; change the hook's command line to --runtime %s",
			other, d.runtime, other)
	}
	return err
}

// other returns the name of another runtime that sends such payloads; empty: it is ours, or uncertain. A
// member that only ours sends counts most, because a new release may have more members.
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

func (d claudelike) tool(c *Call, p *payload) error {
	e := &c.Event
	if p.Tool == "" {
		return unnamed(d.runtime, "tool_name")
	}
	e.ToolUseID = p.UseID
	if err := c.tool(cmp.Or(e.Runtime, d.runtime), p.Tool, p.Input); err != nil {
		return err
	}
	serverOf(e, p)
	if c.keyed(); e.HookType != schema.PreToolUse {
		e.ToolOutput = present(p.Output, p.Result)
	}
	if e.HookType == schema.ToolError {
		e.Error = Text(present(p.Error))
	}
	return nil
}

// serverOf sets the facts of an MCP tool from the payload's server, which is exact.
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
	c.label("permission_mode", p.Mode, "model", p.Model, "source", p.Source, "reason", p.Reason, "status", p.Status)
	if p.Active.Kind() == 't' {
		c.label(putOff, p.Active)
	}
	if p.Subagent != "" {
		c.label("subagent", quoted(p.Subagent), "subagent_type", p.Kind)
	}
	if first, ok := At(d, c.Moment.Event); ok && first.Name != c.Moment.Name {
		c.label("moment", quoted(c.Moment.Name)) // the event is named for another moment
	}
	var usage map[string]jsontext.Value
	if p.Usage.Kind() == '{' && schema.Unmarshal(p.Usage, &usage) == nil && len(usage) <= mostCounts {
		for name, count := range usage {
			if n, err := strconv.ParseInt(string(count), 10, 64); err == nil {
				c.label(clip(name), quoted(strconv.FormatInt(n, 10)))
			}
		}
	}
}

// mostCounts limits the token counts in the labels; a runtime has about six.
const mostCounts = 16
