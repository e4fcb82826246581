package dialect

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// opencode is OpenCode 1.18, which runs no hooks as programs. agentshim's plugin in OpenCode's process asks instead.
// This comment is the contract between the plugin and this dialect.
//
// The plugin sends one JSON object:
//
//	{"hook": "tool.execute.before", "sessionID": "ses_…", "directory": "/home/dev/project", "version": "1.18.33",
//	 "tool": "bash", "callID": "call_…", "args": {"command": "ls"}}
//
//	hook       one of Moments; the plugin always sends it, and it must agree with --event
//	sessionID  the session; absent only if OpenCode passes none
//	directory  the working directory with which OpenCode created the plugin
//	version    OpenCode's version, if the plugin knows it
//	parentID   the user's session, if this one belongs to a subagent at any depth
//	agent      at chat.message: the agent's name, if OpenCode passes it
//	tool, callID, args
//	           at tool.execute.*: input.tool, input.callID, and output.args before, input.args after
//	output     at tool.execute.after: the whole output object, {title, output, metadata} or {content: […]} of an MCP tool
//	prompt     at chat.message: the text parts of the message, joined by newlines
//
// The answer is always one JSON object with a decision, and exit code 0:
//
//	{"decision": "allow"}                       no opinion
//	{"decision": "deny", "reason": "…"}         tool.execute.before, chat.message: throw new Error(reason); elsewhere nothing
//	{"decision": "allow", "args": {…}}          tool.execute.before: these are all the arguments; remove all others from
//	                                            output.args
//	{"decision": "allow", "output": …}          tool.execute.after: replaces the tool's output: an object has the members
//	                                            of output that change, a string replaces output.output, or the text
//	                                            of the content
//	{"decision": "allow", "append": "…"}        tool.execute.after: follows the output's text after an empty line;
//	                                            chat.message: follows the text of the last text part
//
// Anything else (no answer, an exit code other than 0, no JSON object, another decision) is a failure of the shim.
// The plugin then throws at tool.execute.before and chat.message. A working shim always answers, and has already
// decided whether an unreachable fabric means a deny. OpenCode waits for a plugin without a limit, so the plugin
// needs a deadline of its own, longer than the shim's.
type opencode struct{}

// Moments returns the hooks of a plugin, and the bus events that the plugin passes on. OpenCode does not wait for the
// answer to an event.
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
