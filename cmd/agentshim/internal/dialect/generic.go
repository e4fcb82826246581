package dialect

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// generic is the fabric's own form: a canonical event, and one verdict object with exit code 0.
type generic struct{}

// Moments returns the fabric's events, which support all abilities.
func (generic) Moments() []Moment {
	everything := map[Ability]How{Deny: Native, Ask: Native, Approve: Native, Rewrite: Native,
		Inject: Native, Replace: Native, Feedback: Native, Stop: Native, Retry: Native, Restart: Native, Effects: Native}
	types := schema.EventTypes()
	all := make([]Moment, 0, len(types))
	for _, t := range types {
		all = append(all, Moment{Name: string(t), Event: t, Can: everything})
	}
	return all
}

// Decode reads a canonical event.
func (g generic) Decode(in Input) (*Call, error) {
	c := &Call{Moment: in.Moment, Event: schema.Glance(in.Payload)}
	if in.Moment.Name != "" {
		c.Event.HookType = in.Moment.Event
	} else if m, ok := At(g, c.Event.HookType); ok {
		c.Moment = m
	}
	e, err := schema.ReadEvent(in.Payload)
	if err != nil {
		return c, fmt.Errorf("reading the event on stdin: %w; write one JSON object such as "+
			`{"hook_type":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`, err)
	}
	want := in.Moment.Event
	switch {
	case e.HookType == "" && want == "":
		return c, fmt.Errorf("the event on stdin has no hook_type; name it there or with --event")
	case e.HookType == "":
		e.HookType = want
	case want != "" && e.HookType != want:
		return c, fmt.Errorf("the event on stdin has the hook_type %s, but --event is %s; use the same event in both", e.HookType, want)
	}
	if _, err := schema.ParseEventType(string(e.HookType)); err != nil {
		return c, fmt.Errorf("the event on stdin: hook_type: %w", err)
	}
	if e.HookType == schema.PreToolUse && e.ToolName == "" {
		return c, fmt.Errorf("the event on stdin has no tool_name, which PreToolUse needs; write the tool's name there")
	}
	c.Event = *e
	c.Event.ToolKind, c.Event.ToolArgs = factsOf(e)
	if e.ToolUseID != "" {
		c.Key, c.ByID, c.Pair = e.ToolUseID+"/"+string(e.HookType), true, e.ToolUseID
	}
	return c, nil
}

// factsOf returns the facts that an event states about its tool, or those of the tool's name, so that a policy
// about shells also applies to the shells of users' own loops.
func factsOf(e *schema.Event) (kind string, args jsontext.Value) {
	if e.ToolKind != "" || e.ToolArgs != nil || e.ToolName == "" {
		return e.ToolKind, e.ToolArgs
	}
	for _, runtime := range []string{e.Runtime, "claude", "gemini", "opencode"} {
		if kind, args = schema.ToolFacts(runtime, e.ToolName, e.ToolInput); kind != "" {
			return kind, args
		}
	}
	return "", nil
}

// Encode returns the verdict itself. Exit code 1 tells the client that its event was faulty.
func (generic) Encode(c *Call, v *schema.Verdict) (Answer, error) {
	said := *v
	said.Fabric, said.Acked = "", nil // only the shim needs them
	if said.Decision == schema.None {
		said.Decision = schema.Continue
	}
	data, err := schema.Marshal(&said)
	if err != nil {
		return Answer{}, fmt.Errorf("encoding the verdict: %w", err)
	}
	a := Answer{Stdout: append(data, '\n')}
	if c.Faulty {
		a.Exit = 1
	}
	return a, nil
}

// Refuse returns a verdict that refuses. It denies an event without a name, whose kind is unknown.
func (g generic) Refuse(m Moment, reason string) Answer {
	reason = spoken(reason)
	v := schema.Verdict{Decision: m.Event.Blocking(), Reason: reason, HookErrors: []string{reason}}
	if m.Event == "" {
		v.Decision = schema.Deny
	}
	a, err := g.Encode(&Call{Moment: m}, &v)
	if err != nil {
		return Answer{Stderr: reason, Exit: 2}
	}
	return a
}
