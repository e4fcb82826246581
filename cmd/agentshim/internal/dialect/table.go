package dialect

import "github.com/hookfabric/hookfabric/schema"

// A Capability is one ability at one event.
type Capability struct {
	// Name is a description for people.
	Name string
	// Event and Ability identify it.
	Event   schema.EventType
	Ability Ability
	// By is how each runtime supports it, by the runtime's name.
	By map[string]How
}

// Table returns the capabilities of each runtime. The first of several moments for one event counts.
// An ability that only a later moment has, such as an approval where the runtime is about to ask, is
// emulated.
func Table() []Capability {
	all := []Capability{
		{Name: "deny a tool call", Event: schema.PreToolUse, Ability: Deny},
		{Name: "ask a person for approval", Event: schema.PreToolUse, Ability: Ask},
		{Name: "skip the runtime's own approval prompt", Event: schema.PreToolUse, Ability: Approve},
		{Name: "rewrite a tool's input", Event: schema.PreToolUse, Ability: Rewrite},
		{Name: "inject text before a tool", Event: schema.PreToolUse, Ability: Inject},
		{Name: "inject text after a tool", Event: schema.PostToolUse, Ability: Inject},
		{Name: "replace a tool's output", Event: schema.PostToolUse, Ability: Replace},
		{Name: "give feedback on a call that ran", Event: schema.PostToolUse, Ability: Feedback},
		{Name: "inject text after a failed tool", Event: schema.ToolError, Ability: Inject},
		{Name: "deny a prompt", Event: schema.UserPromptSubmit, Ability: Deny},
		{Name: "inject text with a prompt", Event: schema.UserPromptSubmit, Ability: Inject},
		{Name: "inject text at the start", Event: schema.SessionStart, Ability: Inject},
		{Name: "stop a call of the model", Event: schema.BeforeLLMCall, Ability: Stop},
		{Name: "keep the agent going at the end of its turn", Event: schema.BeforeFinalResponse, Ability: Retry},
		{Name: "end the run before a tool", Event: schema.PreToolUse, Ability: Stop},
		{Name: "end the run after a tool", Event: schema.PostToolUse, Ability: Stop},
	}
	for i := range all {
		c := &all[i]
		c.By = make(map[string]How, len(dialects()))
		for name, made := range dialects() {
			c.By[name] = c.of(made())
		}
	}
	return all
}

// of returns how a runtime supports the capability.
func (c *Capability) of(d Dialect) How {
	event := c.Event
	if _, ok := At(d, event); !ok && event == schema.ToolError {
		event = schema.PostToolUse // runtimes send it for failed calls as well
	}
	first, ok := At(d, event)
	if !ok || first.Can[c.Ability] != Impossible {
		return first.Can[c.Ability]
	}
	for _, m := range d.Moments() {
		later := c.Ability == Approve || c.Ability == Stop
		if m.Event == event && later && m.Can[c.Ability] == Native {
			return Emulated
		}
	}
	return Impossible
}
