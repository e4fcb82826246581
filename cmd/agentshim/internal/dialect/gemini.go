package dialect

import (
	"cmp"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// gemini is Gemini CLI as of 0.61.0. It ignores an answer in Claude Code's form, and runs the tool. It never
// asks a person, because a run without a person would hang.
type gemini struct{}

// Moments returns Gemini CLI's events.
func (gemini) Moments() []Moment {
	return moments(60*time.Second, 0, []Moment{
		{Name: "BeforeTool", Event: schema.PreToolUse, Can: can([]Ability{Deny, Rewrite, Stop}, Approve, Inject)},
		// Only an error with the new text can replace an output.
		{Name: "AfterTool", Event: schema.PostToolUse, Can: can([]Ability{Inject, Feedback, Stop}, Replace)},
		{Name: "BeforeAgent", Event: schema.UserPromptSubmit, Can: can([]Ability{Deny, Inject})},
		{Name: "AfterAgent", Event: schema.BeforeFinalResponse, Endless: true, Can: can([]Ability{Retry, Stop, Inject})},
		{Name: "BeforeModel", Event: schema.BeforeLLMCall, Can: can([]Ability{Deny, Stop, Replace})},
		{Name: "AfterModel", Event: schema.AfterLLMCall, Can: can([]Ability{Stop, Replace}, Deny)},
		{Name: "SessionStart", Event: schema.SessionStart, Can: can([]Ability{Inject})},
		{Name: "SessionEnd", Event: schema.SessionEnd},
	}, "BeforeToolSelection", "PreCompress", "Notification")
}

// geminiPayload is what Gemini CLI sends. Members that decide nothing may have any type.
type geminiPayload struct {
	Session  string         `json:"session_id"`
	Cwd      string         `json:"cwd"`
	History  jsontext.Value `json:"transcript_path"`
	Tool     string         `json:"tool_name"`
	Input    jsontext.Value `json:"tool_input"`
	Output   jsontext.Value `json:"tool_response"`
	MCP      jsontext.Value `json:"mcp_context"`
	Prompt   *string        `json:"prompt"`
	Response jsontext.Value `json:"prompt_response"`
	Asked    jsontext.Value `json:"llm_request"`
	Answered jsontext.Value `json:"llm_response"`
	Source   jsontext.Value `json:"source"`
	Reason   jsontext.Value `json:"reason"`
	Active   jsontext.Value `json:"stop_hook_active"`
}

// Decode reads Gemini CLI's payload.
func (d gemini) Decode(in Input) (*Call, error) {
	c := begun(in)
	e := &c.Event
	var p geminiPayload
	err := c.open(d, in, "Gemini CLI", "hook_event_name", &p, map[string]*string{"session_id": &e.SessionID, "cwd": &e.Cwd, "tool_name": &e.ToolName})
	if err != nil {
		return c, err
	}
	e.SessionID, e.HistoryRef = p.Session, word(p.History)
	e.Cwd = cmp.Or(p.Cwd, in.env("GEMINI_CWD"), in.env("GEMINI_PROJECT_DIR"))
	c.label("source", p.Source, "reason", p.Reason, putOff, p.Active)
	return c, d.fill(c, &p)
}

func (d gemini) fill(c *Call, p *geminiPayload) error {
	e := &c.Event
	switch e.HookType {
	case schema.PreToolUse, schema.PostToolUse:
		return d.tool(c, p)
	case schema.UserPromptSubmit:
		return c.prompted("Gemini CLI", p.Prompt)
	case schema.BeforeFinalResponse:
		if p.Prompt != nil {
			e.Prompt = *p.Prompt
		}
		e.Message = present(p.Response)
	case schema.BeforeLLMCall:
		var asked struct {
			Model jsontext.Value `json:"model"`
		}
		if schema.Unmarshal(p.Asked, &asked) == nil {
			c.label("model", asked.Model)
		}
	case schema.AfterLLMCall:
		d.answered(c, p.Answered)
	}
	return nil
}

// tool reads the members about one tool call. A failed command is no error: only its output shows the failure.
func (gemini) tool(c *Call, p *geminiPayload) error {
	e := &c.Event
	var result struct {
		Error jsontext.Value `json:"error"`
	}
	if e.ToolOutput = present(p.Output); e.HookType == schema.PostToolUse && e.ToolOutput.Kind() == '{' && schema.Unmarshal(e.ToolOutput, &result) == nil {
		if why := present(result.Error); why != nil {
			c.failed(why)
		}
	}
	err := c.tool("gemini", p.Tool, p.Input)
	var server struct {
		Name string `json:"server_name"`
		Tool string `json:"tool_name"`
	}
	if p.MCP.Kind() == '{' && schema.Unmarshal(p.MCP, &server) == nil {
		// The tool's name alone does not show where the server's name ends.
		e.ToolKind, e.ToolArgs = schema.KindMCP, schema.MCPFacts(server.Name, server.Tool)
	}
	c.keyed()
	return err
}

// Encode returns an answer that Gemini CLI obeys. An empty answer is no opinion.
func (d gemini) Encode(c *Call, v *schema.Verdict) (Answer, error) {
	if c.Faulty && refusable(c.Moment) && refuses(v) {
		return d.Refuse(c.Moment, why(v)), nil
	}
	out, specific := parts{}, parts{}
	switch c.Moment.Event {
	case schema.PreToolUse:
		d.before(v, out, specific)
	case schema.PostToolUse, schema.ToolError:
		d.after(v, out, specific)
	case schema.UserPromptSubmit, schema.SessionStart:
		if refuses(v) {
			out.deny(why(v))
		}
		if told := texts(v.Injections); told != "" {
			specific["additionalContext"] = told
		}
	case schema.BeforeFinalResponse:
		if ends(v) {
			out.end(c.Moment.Event, v)
		} else if next := GoesOn(c, v); next != "" {
			out.deny(next) // the reason becomes the next prompt
		}
	case schema.BeforeLLMCall, schema.AfterLLMCall:
		d.model(c, v, out, specific)
	}
	if len(specific) > 0 {
		specific["hookEventName"] = c.Moment.Name
		out["hookSpecificOutput"] = specific
	}
	if len(out) == 0 {
		return Answer{}, nil
	}
	return out.say(d, c.Moment)
}

func (o parts) end(t schema.EventType, v *schema.Verdict) {
	text := Text(v.Value)
	if t.StopValue() == schema.MessageValue {
		text = messageText(v.Value)
	}
	reason := strings.TrimSpace(v.Reason + "\n" + text)
	if v.Terminate != nil {
		reason = cmp.Or(strings.TrimSpace(v.Terminate.Reason), reason)
	}
	o["continue"], o["stopReason"] = false, cmp.Or(reason, stopReason)
}

func (gemini) before(v *schema.Verdict, out, specific parts) {
	switch {
	case ends(v):
		out.end(schema.PreToolUse, v) // the tool does not run
		return
	case refuses(v) || v.Decision == schema.Ask:
		out.deny(why(v))
		return
	case v.UpdatedInput != nil:
		specific["tool_input"] = v.UpdatedInput
	}
	if v.Decision == schema.Allow && v.AutoApprove {
		out["decision"] = "allow"
	}
}

// after writes the answer about a call that has run. The reason of a deny replaces all texts for the model.
func (gemini) after(v *schema.Verdict, out, specific parts) {
	told, output := texts(v.Injections), replacement(v)
	switch {
	case ends(v):
		out.end(schema.PostToolUse, v)
	case output != "" || refuses(v):
		out.deny(together(feedback(v), output, told))
	case told != "":
		specific["additionalContext"] = told
	}
}

// model writes the answer about a call of the model. Before the call, a hook's message counts only with a
// deny. After it, a deny does not prevent the message's tool calls, so model ends the run.
func (gemini) model(c *Call, v *schema.Verdict, out, specific parts) {
	before := c.Moment.Event == schema.BeforeLLMCall
	switch {
	case v.Terminate != nil || !before && (v.Decision == schema.Fail || refuses(v) && v.Value == nil):
		out.end(c.Moment.Event, v)
	case v.Value != nil && v.Decision != schema.Fail:
		specific["llm_response"] = synthetic(v.Value)
		if before {
			out.deny(cmp.Or(strings.TrimSpace(v.Reason), stopReason))
		}
	case refuses(v):
		out.deny(why(v))
	}
}

// Refuse returns exit code 2 with the reason on stderr. At the end of a turn, the reason would become the next
// prompt, and after a call of the model code 2 has no effect, so Refuse ends the run there.
func (gemini) Refuse(m Moment, reason string) Answer {
	reason = spoken(reason)
	switch {
	case m.Event == schema.BeforeFinalResponse || m.Event == schema.AfterLLMCall:
		return parts{"continue": false, "stopReason": reason}.flat()
	case !refusable(m):
		return Answer{Stderr: reason + "\n"}
	}
	return Answer{Stderr: reason + "\n", Exit: 2}
}

type geminiMessage struct {
	Candidates []geminiCandidate `json:"candidates"`
}

type geminiCandidate struct {
	Content jsontext.Value `json:"content"`
	Finish  string         `json:"finishReason"`
	Index   int            `json:"index"`
}

// answered reads the model's message. Of the chunks of a stream, the fabric judges the last one.
func (gemini) answered(c *Call, answer jsontext.Value) {
	var said struct {
		Text       string `json:"text"`
		Candidates []struct {
			Content jsontext.Value `json:"content"`
			Finish  jsontext.Value `json:"finishReason"`
		} `json:"candidates"`
	}
	if answer.Kind() != '{' || schema.Unmarshal(answer, &said) != nil {
		return // an unreadable chunk may be the last one, so the fabric judges it
	}
	last := false
	for _, one := range said.Candidates {
		last = last || word(one.Finish) != ""
	}
	if !last {
		m := c.Moment
		m.Event = ""
		c.become(m)
		return
	}
	var m schema.Message
	if len(said.Candidates) > 0 {
		m = geminiContent(said.Candidates[0].Content)
	}
	if m.Content = cmp.Or(said.Text, m.Content); m.Content != "" && len(m.ToolCalls) == 0 {
		c.Event.Message = quoted(m.Content)
	} else if v, err := schema.Marshal(&m); err == nil && m.Native != nil {
		c.Event.Message = v
	}
}

// geminiContent converts Gemini's content, whose texts are strings for hooks, to a message.
func geminiContent(content jsontext.Value) schema.Message {
	m := schema.Message{Role: schema.RoleAssistant, Native: present(content)}
	var said struct {
		Parts []jsontext.Value `json:"parts"`
	}
	if content.Kind() != '{' || schema.Unmarshal(content, &said) != nil {
		return m
	}
	var texts []string
	for _, part := range said.Parts {
		var p struct {
			Text    string `json:"text"`
			Thought bool   `json:"thought"`
			Call    *struct {
				ID   string         `json:"id"`
				Name string         `json:"name"`
				Args jsontext.Value `json:"args"`
			} `json:"functionCall"`
		}
		switch {
		case part.Kind() == '"':
			texts = append(texts, Text(part))
		case part.Kind() != '{' || schema.Unmarshal(part, &p) != nil:
		case p.Call != nil:
			m.ToolCalls = append(m.ToolCalls, schema.ToolCall{ID: p.Call.ID, Name: p.Call.Name, Input: present(p.Call.Args)})
		case p.Text != "" && !p.Thought:
			texts = append(texts, p.Text)
		}
	}
	m.Content = strings.Join(texts, "")
	return m
}

// synthetic returns a message as a response of the model, of which Gemini CLI reads only texts.
func synthetic(message jsontext.Value) any {
	content, _ := schema.Marshal(map[string]any{"role": "model", "parts": []string{cmp.Or(messageText(message), "(no text)")}})
	return geminiMessage{Candidates: []geminiCandidate{{Content: content, Finish: "STOP"}}}
}
