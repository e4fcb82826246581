package dialect

import (
	"cmp"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// agy is the Antigravity CLI, 1.1 to 1.2, as third parties observed it. It is experimental. Its payloads do
// not name the event. Before a tool it fails closed: any answer but an allow is a deny.
type agy struct{}

// Moments returns its events. After a tool it sends neither the tool nor its output, and reads no answer.
func (agy) Moments() []Moment {
	return moments(30*time.Second, 0, []Moment{
		{Name: "PreToolUse", Event: schema.PreToolUse, Can: can([]Ability{Deny, Ask})},
		{Name: "PostToolUse", Event: schema.PostToolUse},
		{Name: "PreInvocation", Event: schema.BeforeLLMCall, Can: can([]Ability{Inject})},
		{Name: "Stop", Event: schema.BeforeFinalResponse, Endless: true, Unmarked: true, Can: can([]Ability{Retry, Inject})},
		{Name: "SessionStart", Event: schema.SessionStart},
	}, "PostInvocation")
}

type agyPayload struct {
	Call struct {
		Name string         `json:"name"`
		Args jsontext.Value `json:"args"`
	} `json:"toolCall"`
	Conversation string         `json:"conversationId"`
	Step         *int64         `json:"stepIdx"`
	Workspaces   []string       `json:"workspacePaths"`
	History      jsontext.Value `json:"transcriptPath"`
	Model        jsontext.Value `json:"modelName"`
	Invocation   int            `json:"invocationNum"`
	Why          jsontext.Value `json:"terminationReason"`
	Error        jsontext.Value `json:"error"`
	Event        string         `json:"hook_event_name"` // another runtime's: the Antigravity CLI never sends it
}

// Decode reads the payload of the Antigravity CLI.
func (d agy) Decode(in Input) (*Call, error) {
	c := begun(in)
	e := &c.Event
	var p agyPayload
	if err := c.open(d, in, "the Antigravity CLI", "", &p, map[string]*string{"conversationId": &e.SessionID}); err != nil {
		return c, err
	}
	e.SessionID, e.HistoryRef = p.Conversation, word(p.History)
	if len(p.Workspaces) > 0 {
		e.Cwd = p.Workspaces[0]
	}
	c.label("model", p.Model, "reason", p.Why)
	switch {
	case p.Conversation == "" || p.Event != "":
		return c, unnamed("the Antigravity CLI", "conversationId")
	case e.HookType == schema.PreToolUse, e.HookType == schema.PostToolUse:
		return c, d.tool(c, &p)
	case e.HookType == schema.BeforeLLMCall:
		e.Iteration = p.Invocation
	}
	return c, nil
}

// tool reads the call before it runs, and only its step after that.
func (agy) tool(c *Call, p *agyPayload) error {
	e := &c.Event
	if p.Step != nil {
		e.ToolUseID = p.Conversation + "/" + strconv.FormatInt(*p.Step, 10)
	}
	if why := present(p.Error); e.HookType == schema.PostToolUse {
		if why != nil && errorText(why) != "" {
			c.failed(why)
		}
		c.keyed()
		return nil
	}
	err := c.tool("agy", p.Call.Name, p.Call.Args)
	c.keyed()
	if c.ByID {
		c.Key += "/" + callHash(e) // a step may have several calls
	}
	return err
}

// Encode always writes a decision before a tool and at the end of a turn.
func (d agy) Encode(c *Call, v *schema.Verdict) (Answer, error) {
	out := parts{}
	switch c.Moment.Event {
	case schema.PreToolUse:
		out["decision"] = "allow"
		if refuses(v) || v.Terminate != nil {
			out.deny(why(v))
		} else if v.Decision == schema.Ask {
			out["decision"], out["reason"] = "ask", cmp.Or(v.Reason, askReason)
		}
	case schema.BeforeFinalResponse:
		out["decision"] = "allow"
		if next := GoesOn(c, v); next != "" {
			out["decision"], out["reason"] = "block", next
		}
	case schema.BeforeLLMCall:
		if steps := agySteps(v.Injections); len(steps) > 0 {
			out["injectSteps"] = steps
		}
	}
	return out.say(d, c.Moment)
}

func agySteps(all []schema.Injection) (steps []parts) {
	for i := range all {
		member := "ephemeralMessage"
		if all[i].Strategy == schema.UserMessage {
			member = "userMessage"
		}
		if all[i].Content != "" {
			steps = append(steps, parts{member: all[i].Content})
		}
	}
	return steps
}

// Refuse returns a deny with exit code 0. With another code the runtime drops the reason.
func (agy) Refuse(m Moment, reason string) Answer {
	out := parts{}
	if refusable(m) {
		out.deny(spoken(reason))
	} else if m.Event == schema.BeforeFinalResponse {
		out["decision"] = "allow"
	}
	return out.flat()
}
