package dialect

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// opencode is OpenCode 1.18, which runs no hooks as programs: agentshim's plugin in its process asks instead.
// The plugin sends one JSON object:
//
//	{"hook": "tool.execute.before", "sessionID": "ses_…", "directory": "/home/dev/project", "version": "1.18.33",
//	 "tool": "bash", "callID": "call_…", "args": {"command": "ls"}}
//
//	hook       one of Moments
//	parentID   the user's session, if this one belongs to a subagent at any depth
//	agent, prompt    at chat.message: the agent's name, and the text parts of the message, joined by newlines
//	tool, callID, args, output    at tool.execute.*, as OpenCode passes them
//
// The answer is one JSON object with a decision, and exit code 0. On anything else, the plugin throws at
// tool.execute.before and chat.message.
//
//	{"decision": "allow"}                  no opinion
//	{"decision": "deny", "reason": "…"}    tool.execute.before, chat.message: the plugin throws the reason
//	{"decision": "allow", "args": {…}}     tool.execute.before: all the arguments; the plugin removes all others
//	{"decision": "allow", "output": …}     tool.execute.after: members of output that change, or its whole text
//	{"decision": "allow", "append": "…"}   tool.execute.after, chat.message: follows the text after an empty line
type opencode struct{}

// Moments returns the hooks of a plugin, and bus events, whose answers OpenCode does not wait for.
func (opencode) Moments() []Moment {
	return moments(0, 0, []Moment{
		// The model sees the error that the plugin throws as the tool's result.
		{Name: "tool.execute.before", Event: schema.PreToolUse, Can: can([]Ability{Deny, Rewrite}, Inject)},
		{Name: "tool.execute.after", Event: schema.PostToolUse, Can: can([]Ability{Inject, Replace}, Feedback)},
		{Name: "chat.message", Event: schema.UserPromptSubmit, Can: can([]Ability{Inject}, Deny)},
		{Name: "session.created", Event: schema.SessionStart},
		{Name: "session.idle", Event: schema.QueryEnd},
		{Name: "session.deleted", Event: schema.SessionEnd},
	}, "session.error", "session.compacted", "permission.asked", "permission.replied")
}

type opencodePayload struct {
	Hook      string         `json:"hook"`
	Session   string         `json:"sessionID"`
	Directory string         `json:"directory"`
	Version   jsontext.Value `json:"version"`
	Parent    string         `json:"parentID"`
	Agent     jsontext.Value `json:"agent"`
	Tool      string         `json:"tool"`
	Call      string         `json:"callID"`
	Args      jsontext.Value `json:"args"`
	Output    jsontext.Value `json:"output"`
	Prompt    *string        `json:"prompt"`
}

// Decode reads the plugin's payload.
func (d opencode) Decode(in Input) (*Call, error) {
	c := begun(in)
	e := &c.Event
	var p opencodePayload
	err := c.open(d, in, "our plugin for OpenCode", "hook", &p, map[string]*string{"sessionID": &e.SessionID, "directory": &e.Cwd,
		"tool": &e.ToolName, "callID": &e.ToolUseID, "parentID": &c.Parent})
	if err != nil {
		return c, err
	}
	e.SessionID, e.Cwd = p.Session, p.Directory
	c.label("version", p.Version, "agent", p.Agent)
	if p.Parent != "" {
		c.Subagent, c.Parent, e.SessionID = p.Session, p.Parent, p.Parent
		c.label("subagent", quoted(p.Session))
		if !e.HookType.HasTool() && e.HookType != schema.UserPromptSubmit {
			c.become(Moment{Name: c.Moment.Name}) // the session of the agent itself continues
			return c, nil
		}
	}
	switch {
	case e.HookType == schema.UserPromptSubmit:
		return c, c.prompted("our plugin for OpenCode", p.Prompt)
	case !e.HookType.HasTool():
		return c, nil
	}
	e.ToolUseID, e.ToolOutput = p.Call, present(p.Output)
	err = c.tool("opencode", p.Tool, p.Args)
	c.keyed()
	return c, err
}

// Encode always returns one JSON object with a decision.
func (d opencode) Encode(c *Call, v *schema.Verdict) (Answer, error) {
	out := parts{"decision": "allow"}
	switch c.Moment.Event {
	case schema.PreToolUse, schema.UserPromptSubmit:
		if refuses(v) {
			return d.Refuse(c.Moment, together(why(v), texts(v.Injections))), nil
		}
		if v.UpdatedInput != nil {
			out["args"] = v.UpdatedInput
		}
		if told := texts(v.Injections); told != "" && c.Moment.Event == schema.UserPromptSubmit {
			out["append"] = told
		}
	case schema.PostToolUse:
		if v.UpdatedOutput != nil {
			out["output"] = v.UpdatedOutput
		}
		if told := together(feedback(v), texts(v.Injections)); told != "" {
			out["append"] = told
		}
	}
	return out.say(d, c.Moment)
}

// Refuse returns a deny. The plugin throws it at hooks where that refuses something.
func (opencode) Refuse(_ Moment, reason string) Answer {
	return parts{"decision": "deny", "reason": spoken(reason)}.flat()
}
