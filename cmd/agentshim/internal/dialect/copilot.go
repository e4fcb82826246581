package dialect

import (
	"cmp"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// copilot is GitHub's Copilot CLI as of 1.0.102. A hook with a camelCase key gets members in camelCase without
// the event's name, and answers with a flat object. A hook with a PascalCase key has Claude Code's form.
// Neither has an id of a call.
type copilot struct{}

const (
	camel  = "camel"
	pascal = "pascal"
)

// Moments returns Copilot's events under both names. preMcpToolCall cannot refuse, so it is not judged.
func (copilot) Moments() []Moment {
	// An empty answer asks the person. The input is the one that preToolUse rewrote.
	permission := can([]Ability{Deny, Ask, Approve, Stop}, Rewrite)
	final := can([]Ability{Retry, Inject})
	tool := can([]Ability{Deny, Ask, Approve, Rewrite, Inject})
	after := can([]Ability{Inject, Replace, Feedback})
	judged := []Moment{
		{Name: "preToolUse", Event: schema.PreToolUse, Can: tool},
		{Name: "permissionRequest", Event: schema.PreToolUse, Can: permission},
		{Name: "postToolUse", Event: schema.PostToolUse, Can: after, Longest: copilotLongest},
		{Name: "postToolUseFailure", Event: schema.ToolError},
		{Name: "userPromptSubmitted", Event: schema.UserPromptSubmit, Can: can([]Ability{Deny, Inject})},
		{Name: "agentStop", Event: schema.BeforeFinalResponse, Turns: mostTurns, Can: final},
		{Name: "subagentStop", Event: schema.BeforeFinalResponse, Turns: mostTurns, Can: final},
		{Name: "sessionStart", Event: schema.SessionStart, Can: can([]Ability{Inject})},
		{Name: "sessionEnd", Event: schema.SessionEnd},
	}
	others := map[string]string{"userPromptSubmitted": "UserPromptSubmit", "agentStop": "Stop"}
	for _, m := range judged {
		m.Name = cmp.Or(others[m.Name], strings.ToUpper(m.Name[:1])+m.Name[1:])
		judged = append(judged, m)
	}
	return moments(30*time.Second, 0, judged, "userPromptTransformed", "preMcpToolCall", "subagentStart", "preCompact", "errorOccurred", "notification",
		"SubagentStart", "PreCompact", "Notification")
}

type copilotPayload struct {
	Event   string         `json:"hook_event_name"`
	Hook    string         `json:"hookName"`
	Cwd     string         `json:"cwd"`
	Prompt  *string        `json:"prompt"`
	Source  jsontext.Value `json:"source"`
	Reason  jsontext.Value `json:"reason"`
	Active  jsontext.Value `json:"stop_hook_active"`
	Error   jsontext.Value `json:"error"`
	Session string         `json:"sessionId"`
	Tool    string         `json:"toolName"`
	Args    jsontext.Value `json:"toolArgs"`
	Input   jsontext.Value `json:"toolInput"` // of permissionRequest
	Result  jsontext.Value `json:"toolResult"`
	History jsontext.Value `json:"transcriptPath"`
	Agent   jsontext.Value `json:"agentName"`

	AgentID      string         `json:"agentId"` // of a subagent, and of its session
	AgentType    jsontext.Value `json:"agentType"`
	Parent       string         `json:"parentAgentId"`
	PascalID     string         `json:"agent_id"`
	PascalType   jsontext.Value `json:"agent_type"`
	PascalParent string         `json:"parent_agent_id"`

	PascalSession string         `json:"session_id"`
	PascalTool    string         `json:"tool_name"`
	PascalInput   jsontext.Value `json:"tool_input"`
	PascalResult  jsontext.Value `json:"tool_result"`
	PascalHistory jsontext.Value `json:"transcript_path"`
	PascalAgent   jsontext.Value `json:"agent_name"`
}

// formOf returns the form of the protocol at a moment.
func formOf(m Moment) string {
	if m.Name != "" && strings.ToUpper(m.Name[:1]) == m.Name[:1] {
		return pascal
	}
	return camel
}

// Decode reads Copilot's payload.
func (d copilot) Decode(in Input) (*Call, error) {
	c := begun(in)
	e := &c.Event
	var event, hook string
	glance(in.Payload, map[string]*string{"hook_event_name": &event, "hookName": &hook, "sessionId": &e.SessionID, "session_id": &e.SessionID,
		"cwd": &e.Cwd, "toolName": &e.ToolName, "tool_name": &e.ToolName, "agentId": &c.Subagent, "agent_id": &c.Subagent,
		"parentAgentId": &c.Parent, "parent_agent_id": &c.Parent})
	named := cmp.Or(event, hook)
	if hook == "permissionRequest" && in.Moment.Name == "PermissionRequest" {
		named = in.Moment.Name // permissionRequest has camelCase members in both forms
	}
	disagrees := c.settle(d, in, named)
	c.Form = formOf(c.Moment)
	if c.inParent() {
		return c, nil
	}
	var p copilotPayload
	err := c.read("Copilot", in.Payload, &p)
	switch {
	case err != nil:
		return c, err
	case disagrees != nil:
		return c, disagrees
	case c.Form == pascal && named == "":
		return c, unnamed("Copilot", "hook_event_name")
	case cmp.Or(p.Session, p.PascalSession) == "":
		return c, unnamed("Copilot", "sessionId")
	}
	return c, d.fill(c, in, &p)
}

func (d copilot) fill(c *Call, in Input, p *copilotPayload) error {
	e := &c.Event
	c.Subagent, c.Parent = cmp.Or(p.AgentID, p.PascalID), cmp.Or(p.Parent, p.PascalParent)
	e.SessionID, e.HistoryRef = cmp.Or(c.Parent, p.Session, p.PascalSession), cmp.Or(word(p.History), word(p.PascalHistory))
	e.Cwd = cmp.Or(p.Cwd, in.env("COPILOT_PROJECT_DIR"))
	c.label("source", p.Source, "reason", p.Reason, putOff, p.Active)
	if c.Subagent != "" {
		c.label("subagent", quoted(c.Subagent), "subagent_type", present(p.AgentType, p.PascalType))
	} else if strings.EqualFold(c.Moment.Name, "subagentStop") {
		c.Subagent = cmp.Or(word(p.Agent), word(p.PascalAgent), "subagent")
	}
	switch e.HookType {
	case schema.PreToolUse, schema.PostToolUse, schema.ToolError:
		return d.tool(c, p)
	case schema.UserPromptSubmit:
		return c.prompted("Copilot", p.Prompt)
	}
	return nil
}

// tool reads the members about one tool call. Older builds write the arguments as JSON in a string.
func (copilot) tool(c *Call, p *copilotPayload) error {
	e := &c.Event
	input := parsed(present(p.Args, p.Input, p.PascalInput))
	if s := word(input); s != "" {
		// Some tools, such as apply_patch, take one text instead of an object.
		input = object(values{"input": quoted(s)})
		c.Form += asText
	}
	e.ToolOutput = present(p.Result, p.PascalResult)
	if e.HookType == schema.ToolError {
		e.Error = errorText(present(p.Error))
	}
	err := c.tool("copilot", cmp.Or(p.Tool, p.PascalTool), input)
	c.Pair = copilotHash(c)
	c.Key = c.phase() + c.Pair
	return err
}

// asText is the suffix of the form of a call whose arguments are one text.
const asText = "+text"

// copilotHash returns a key that all events of one call share. When Copilot asks for permission, it uses
// another name of the tool, and omits the description of a command.
func copilotHash(c *Call) string {
	e := &c.Event
	same := schema.Event{SessionID: e.SessionID + c.Subagent, ToolName: e.ToolName, ToolInput: e.ToolInput}
	switch e.ToolKind {
	case schema.KindShell:
		if args := members(e.ToolInput); args != nil {
			delete(args, "description")
			same.ToolName, same.ToolInput = strings.ToLower(e.ToolName), object(args)
		}
	case schema.KindMCP:
		same.ToolName = strings.Replace(e.ToolName, "/", "-", 1)
	}
	return callHash(&same)
}

// Encode returns an answer that Copilot obeys. An empty answer is no opinion.
func (d copilot) Encode(c *Call, v *schema.Verdict) (Answer, error) {
	if c.Faulty && refusable(c.Moment) && refuses(v) {
		return everyNo(why(v), texts(v.Injections)), nil
	}
	w := copilotWriter{call: c, v: v, out: parts{}, specific: parts{}}
	switch c.Moment.Event {
	case schema.PreToolUse:
		if strings.EqualFold(c.Moment.Name, permissionRequest) {
			w.permission()
		} else {
			w.before()
		}
	case schema.PostToolUse:
		w.after()
	case schema.UserPromptSubmit, schema.SessionStart:
		if refuses(v) {
			w.out["decision"], w.out["reason"] = "block", why(v)
		}
		w.context(texts(v.Injections))
	case schema.BeforeFinalResponse:
		if next := GoesOn(c, v); next != "" {
			w.out["decision"], w.out["reason"] = "block", next
		}
	}
	if len(w.specific) > 0 {
		w.specific["hookEventName"] = c.Moment.Name
		w.out["hookSpecificOutput"] = w.specific
	}
	if len(w.out) == 0 {
		return Answer{}, nil
	}
	return w.out.say(d, c.Moment)
}

// Refuse returns a deny on stdout with exit code 0. With another code, Copilot drops the reason.
func (d copilot) Refuse(m Moment, reason string) Answer {
	reason = spoken(reason)
	switch {
	case m.Name == "":
		a := everyNo(reason, "")
		a.Stderr, a.Exit = reason+"\n", 2
		return a
	case !refusable(m):
		return Answer{Stderr: reason + "\n"}
	}
	a, err := d.Encode(&Call{Moment: m}, &schema.Verdict{Decision: schema.Deny, Reason: reason})
	if err != nil {
		return Answer{Stderr: reason + "\n", Exit: 2}
	}
	return a
}

// everyNo returns a denial in all forms at once, for a hook whose moment is uncertain.
func everyNo(reason, told string) Answer {
	flat := parts{"permissionDecision": "deny", "permissionDecisionReason": reason, "behavior": "deny", "message": reason,
		"decision": "block", "reason": reason}
	nested := parts{"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
	if told != "" {
		flat["additionalContext"], nested["additionalContext"] = told, told
	}
	flat["hookSpecificOutput"] = nested
	return flat.flat()
}

// A copilotWriter writes one answer. specific is its part for the event in the PascalCase form.
type copilotWriter struct {
	call          *Call
	v             *schema.Verdict
	out, specific parts
}

// pascal reports whether the answer has Claude Code's form. Only the moment is always known.
func (w *copilotWriter) pascal() bool { return formOf(w.call.Moment) == pascal }

// decide writes a decision about a tool call to the place that the form has for it.
func (w *copilotWriter) decide(decision, reason string) {
	into := w.out
	if w.pascal() {
		into = w.specific
	}
	into["permissionDecision"] = decision
	if reason != "" {
		into["permissionDecisionReason"] = reason
	}
}

// context adds a text for the model. Only PreToolUse reads it at Claude Code's place.
func (w *copilotWriter) context(told string) {
	switch {
	case told == "":
	case w.pascal() && w.call.Moment.Event == schema.PreToolUse:
		w.specific["additionalContext"] = told
	default:
		w.out["additionalContext"] = told
	}
}

func (w *copilotWriter) before() {
	v := w.v
	switch {
	case refuses(v) || v.Terminate != nil:
		w.decide("deny", why(v))
	case v.Decision == schema.Ask:
		w.decide("ask", cmp.Or(v.Reason, askReason))
	case v.Decision == schema.Allow && v.AutoApprove:
		w.decide("allow", v.Reason)
	}
	if v.UpdatedInput != nil && !refuses(v) {
		w.rewrite(w.arguments())
	}
	w.context(texts(v.Injections))
}

// rewrite writes the arguments in both forms, because releases differ in which they read.
func (w *copilotWriter) rewrite(args jsontext.Value) {
	w.out["modifiedArgs"] = args
	if w.pascal() {
		w.specific["updatedInput"] = args
	}
}

// arguments returns the arguments of the rewritten call, as one text if the original was one.
func (w *copilotWriter) arguments() jsontext.Value {
	o := members(w.v.UpdatedInput)
	if !strings.HasSuffix(w.call.Form, asText) || len(o) != 1 || o["input"].Kind() != '"' {
		return w.v.UpdatedInput
	}
	return o["input"]
}

// permission writes the answer in place of a person. Without an answer the person decides.
func (w *copilotWriter) permission() {
	v := w.v
	changed := v.UpdatedInput != nil && !covers(v.UpdatedInput, w.call.Event.ToolInput)
	switch {
	case refuses(v) || v.Terminate != nil:
		w.out["behavior"], w.out["message"] = "deny", why(v)
		if ends(v) {
			w.out["interrupt"] = true
		}
	case changed:
		w.out["behavior"], w.out["message"] = "deny", fixedInput
	case v.Decision == schema.Allow && v.AutoApprove:
		w.out["behavior"] = "allow"
	}
}

func (w *copilotWriter) after() {
	v, output := w.v, replacement(w.v)
	switch {
	case refuses(v):
		// The model sees only the reason of a block.
		w.out["decision"], w.out["reason"] = "block", together(why(v), output, texts(v.Injections))
		return
	case output != "":
		w.out["modifiedResult"] = parts{"resultType": "success", "textResultForLlm": output}
	}
	w.context(texts(v.Injections))
}

// covers reports whether an object has all members of another one: a permission request shows only a part.
func covers(whole, part jsontext.Value) bool {
	all, some := members(whole), members(part)
	for name, v := range some {
		if !sameJSON(v, all[name]) {
			return false
		}
	}
	return len(some) > 0
}
