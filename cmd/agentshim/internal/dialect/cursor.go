package dialect

import (
	"cmp"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// cursor is Cursor 3.9 and its agent CLI, as documented. For a hook with failClosed, an empty answer is a
// failure. For one call Cursor sends a general event, and one for the kind of tool; both have the same key.
type cursor struct{}

// Moments returns Cursor's events. It alone decides when to ask a person.
func (cursor) Moments() []Moment {
	// The input is the one that preToolUse rewrote, and cannot be rewritten again.
	gate := can([]Ability{Deny}, Rewrite)
	return moments(60*time.Second, 0, []Moment{
		{Name: "preToolUse", Event: schema.PreToolUse, Can: can([]Ability{Deny, Rewrite}, Inject)},
		{Name: "beforeShellExecution", Event: schema.PreToolUse, Can: gate},
		{Name: "beforeMCPExecution", Event: schema.PreToolUse, Can: gate},
		{Name: "beforeReadFile", Event: schema.PreToolUse, Can: gate},
		// Cursor replaces the output of MCP tools only.
		{Name: "postToolUse", Event: schema.PostToolUse, Can: can([]Ability{Inject}, Feedback, Replace)},
		{Name: "postToolUseFailure", Event: schema.ToolError},
		{Name: "afterShellExecution", Event: schema.PostToolUse},
		{Name: "afterMCPExecution", Event: schema.PostToolUse},
		{Name: "afterFileEdit", Event: schema.PostToolUse},
		{Name: "beforeSubmitPrompt", Event: schema.UserPromptSubmit, Can: can([]Ability{Deny})},
		{Name: "stop", Event: schema.BeforeFinalResponse, Turns: cursorTurns, Can: can([]Ability{Retry, Inject})},
		{Name: "subagentStop", Event: schema.BeforeFinalResponse, Turns: cursorTurns, Can: can([]Ability{Retry, Inject})},
		{Name: "sessionStart", Event: schema.SessionStart, Can: can([]Ability{Inject})},
		{Name: "sessionEnd", Event: schema.SessionEnd},
	}, "subagentStart", "preCompact", "afterAgentResponse", "afterAgentThought", "beforeTabFileRead", "afterTabFileEdit", "workspaceOpen")
}

const cursorTurns = 5

// cursorPayload is what Cursor sends. Members that decide nothing may have any type.
type cursorPayload struct {
	Session      string         `json:"session_id"`
	Conversation string         `json:"conversation_id"`
	Generation   string         `json:"generation_id"`
	Model        jsontext.Value `json:"model"`
	Version      jsontext.Value `json:"cursor_version"`
	Roots        jsontext.Value `json:"workspace_roots"`
	History      jsontext.Value `json:"transcript_path"`
	Cwd          string         `json:"cwd"`
	Tool         string         `json:"tool_name"`
	Input        jsontext.Value `json:"tool_input"`
	UseID        string         `json:"tool_use_id"`
	ToolOutput   jsontext.Value `json:"tool_output"`
	Command      string         `json:"command"`
	Output       jsontext.Value `json:"output"`
	Result       jsontext.Value `json:"result_json"`
	File         string         `json:"file_path"`
	Edits        jsontext.Value `json:"edits"`
	Prompt       *string        `json:"prompt"`
	Error        jsontext.Value `json:"error"`
	Message      jsontext.Value `json:"error_message"`
	Status       jsontext.Value `json:"status"`
	Loops        jsontext.Value `json:"loop_count"`
	Subagent     jsontext.Value `json:"subagent_id"`
	SubagentType jsontext.Value `json:"subagent_type"`
}

// Decode reads Cursor's payload.
func (d cursor) Decode(in Input) (*Call, error) {
	c := begun(in)
	e := &c.Event
	var p cursorPayload
	err := c.open(d, in, "Cursor", "hook_event_name", &p, map[string]*string{"session_id": &e.SessionID, "conversation_id": &e.SessionID,
		"cwd": &e.Cwd, "tool_name": &e.ToolName, "tool_use_id": &e.ToolUseID})
	if generic, ok := strings.CutPrefix(c.Moment.Name, "before"); ok && e.HookType == schema.PreToolUse {
		e.ToolName = granularTool(generic, e.ToolName)
	}
	if e.ToolName == "Write" && c.Moment.Name == "preToolUse" {
		c.unable(Rewrite) // Cursor accepts the rewrite, and does not run it
	}
	if err != nil {
		return c, err
	}
	return c, d.fill(c, in, &p)
}

// granularTool returns the name that a tool has in the general events.
func granularTool(of, name string) string {
	switch of {
	case "ShellExecution":
		return "Shell"
	case "ReadFile":
		return "Read"
	case "MCPExecution":
		if name != "" && !strings.HasPrefix(name, "MCP:") {
			return "MCP:" + name
		}
	}
	return name
}

func (d cursor) fill(c *Call, in Input, p *cursorPayload) error {
	e := &c.Event
	e.SessionID, e.HistoryRef = cmp.Or(p.Session, p.Conversation), word(p.History)
	var roots []string
	if schema.Unmarshal(p.Roots, &roots) != nil || len(roots) == 0 {
		roots = []string{in.env("CURSOR_PROJECT_DIR")}
	}
	e.Cwd = cmp.Or(p.Cwd, roots[0])
	c.label("model", p.Model, "version", p.Version, "status", p.Status)
	if n, err := strconv.ParseInt(string(p.Loops), 10, 64); err == nil && n > 0 {
		c.label(putOff, jsontext.Value("true"))
	}
	if c.Moment.Name == "subagentStop" {
		c.Subagent = cmp.Or(word(p.Subagent), word(p.SubagentType), "subagent")
	}
	switch e.HookType {
	case schema.PreToolUse, schema.PostToolUse, schema.ToolError:
		return d.tool(c, p)
	case schema.UserPromptSubmit:
		return c.prompted("Cursor", p.Prompt)
	}
	return nil
}

// tool reads the members about one tool call, and converts an event for a kind of tools to the general form.
func (d cursor) tool(c *Call, p *cursorPayload) error {
	e := &c.Event
	name, input, output := p.Tool, parsed(p.Input), present(p.ToolOutput)
	subject, member := "", ""
	switch c.Moment.Name {
	case "beforeShellExecution", "afterShellExecution":
		subject, member = p.Command, "command"
		name, input, output = "Shell", object(values{"command": quoted(p.Command)}), present(p.Output)
	case "beforeMCPExecution", "afterMCPExecution":
		name, output = granularTool("MCPExecution", p.Tool), present(p.Result)
	case "beforeReadFile":
		subject, member = p.File, "file_path"
		name, input = "Read", object(values{"file_path": quoted(p.File)})
	case "afterFileEdit":
		edit := values{"file_path": quoted(p.File)}
		if edits := present(p.Edits); edits != nil {
			edit["edits"] = edits
		}
		name, input = "Write", object(edit)
	}
	e.ToolOutput, e.ToolUseID = parsed(output), p.UseID
	if e.HookType == schema.ToolError {
		e.Error = errorText(present(p.Message, p.Error))
	}
	err := c.tool("cursor", name, input)
	if err == nil && e.HookType == schema.PreToolUse && subject == "" && member != "" {
		err = unnamed("Cursor", member)
	}
	if e.HookType == schema.PostToolUse && e.ToolKind != schema.KindMCP {
		c.unable(Replace)
	}
	d.keyed(c, p)
	return err
}

// unable removes an ability from this call, which other calls of its moment have.
func (c *Call) unable(a Ability) {
	c.Moment.Can = maps.Clone(c.Moment.Can)
	delete(c.Moment.Can, a)
}

// keyed sets the keys of a call, without the id if the event for its kind of tools has none.
func (cursor) keyed(c *Call, p *cursorPayload) {
	c.keyed()
	e := &c.Event
	same := schema.Event{SessionID: cmp.Or(p.Generation, e.SessionID), ToolName: e.ToolName, ToolInput: e.ToolInput}
	only := ""
	switch {
	case e.ToolName == "Shell":
		only = "command"
	case e.ToolName == "Read":
		only = "file_path"
	case e.ToolName == "Write" && e.HookType != schema.PreToolUse:
		only = "file_path" // the result of an edit, which a hook cannot refuse any more
	case e.ToolKind != schema.KindMCP:
		return
	}
	if only != "" {
		args := members(e.ToolInput)
		if args[only] == nil {
			return
		}
		where := cmp.Or(word(args["working_directory"]), p.Cwd)
		same.ToolInput = object(values{only: args[only], "cwd": quoted(where)})
	}
	hash := callHash(&same)
	c.Key, c.ByID = c.phase()+hash, false
	if e.ToolUseID == "" {
		c.Pair = hash
	}
}

// Encode returns one flat object. An empty object is no opinion.
func (d cursor) Encode(c *Call, v *schema.Verdict) (Answer, error) {
	if c.Faulty && refusable(c.Moment) && refuses(v) {
		return d.Refuse(c.Moment, why(v)), nil
	}
	out := parts{}
	switch c.Moment.Event {
	case schema.PreToolUse:
		d.before(c, v, out)
	case schema.PostToolUse, schema.ToolError:
		d.after(c, v, out)
	case schema.UserPromptSubmit:
		if out["continue"] = !refuses(v); refuses(v) {
			out["user_message"] = why(v)
		}
	case schema.BeforeFinalResponse:
		if next := GoesOn(c, v); next != "" {
			out["followup_message"] = next
		}
	case schema.SessionStart:
		if told := texts(v.Injections); told != "" {
			out["additional_context"] = told
		}
	case "":
		if c.Moment.Name == "subagentStart" || c.Moment.Name == "beforeTabFileRead" {
			out["permission"] = "allow"
		}
	}
	return out.say(d, c.Moment)
}

// before writes the answer about a tool call. The model sees user_message, too.
func (cursor) before(c *Call, v *schema.Verdict, out parts) {
	out["permission"] = "allow"
	switch {
	case refuses(v) || v.Terminate != nil || v.Decision == schema.Ask:
		out["permission"], out["user_message"], out["agent_message"] = "deny", why(v), why(v)
	case v.UpdatedInput != nil && c.Moment.Can[Rewrite] == Native && c.Event.ToolName != "Write": // Cursor does not run a rewritten Write
		out["updated_input"] = v.UpdatedInput
	case v.UpdatedInput != nil && !covers(v.UpdatedInput, c.Event.ToolInput):
		reason := "a hook rewrites this call, which this runtime can do only at preToolUse; make the call in a form that the policy accepts unchanged"
		out["permission"], out["user_message"], out["agent_message"] = "deny", reason, reason
	}
}

func (cursor) after(c *Call, v *schema.Verdict, out parts) {
	if c.Moment.Can[Inject] != Native {
		return
	}
	if result := v.UpdatedOutput; result != nil {
		if result.Kind() != '{' {
			result = object(values{"content": blocks(result)})
		}
		out["updated_mcp_tool_output"] = result
	}
	if told := together(feedback(v), texts(v.Injections)); told != "" {
		out["additional_context"] = told
	}
}

// Refuse returns exit code 2 with the reason on stdout, which Cursor shows.
func (cursor) Refuse(m Moment, reason string) Answer {
	reason = spoken(reason)
	if !refusable(m) {
		return Answer{Stdout: []byte("{}\n"), Stderr: reason + "\n"}
	}
	return Answer{Stdout: []byte(reason + "\n"), Stderr: reason + "\n", Exit: 2}
}
