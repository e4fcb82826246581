package dialect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// begun returns the call of a payload that is not read yet.
func begun(in Input) *Call {
	return &Call{Moment: in.Moment, Event: schema.Event{HookType: in.Moment.Event}}
}

// inParent reports whether a subagent's own session begins or ends. The fabric does not judge
// that event, because the agent's session continues.
func (c *Call) inParent() bool {
	t := c.Event.HookType
	own := c.Parent != "" && (t == schema.SessionStart || t == schema.SessionEnd)
	if own {
		c.become(Moment{Name: c.Moment.Name})
	}
	return own
}

// become moves c to the moment m, which may have other abilities or another event.
func (c *Call) become(m Moment) { c.Moment, c.Event.HookType = m, m.Event }

// settle determines the moment of c, from the command line or from the payload. If both name one,
// they must agree. If the runtime never names the moment, named is empty.
func (c *Call) settle(d Dialect, in Input, named string) error {
	var theirs Moment
	for _, m := range d.Moments() {
		if m.Name == named {
			theirs = m
		}
	}
	switch ours := in.Moment.Name; {
	case ours == "" && named == "":
		return fmt.Errorf("the payload on stdin names no event; write --event, such as --event %s", d.Moments()[0].Name)
	case theirs.Name == "" && named != "":
		return fmt.Errorf("the payload on stdin has the event %.64q, which this runtime does not have; name the runtime that runs this hook with --runtime", named)
	case ours == "":
		c.become(theirs)
	case named != "" && ours != named:
		if graver(theirs, in.Moment) {
			c.become(theirs)
		}
		return fmt.Errorf("the payload on stdin has the event %.64q, but --event is %s; configure the hook at the event that --event names", named, ours)
	}
	return nil
}

// readObject reads a payload that must be one JSON object.
func readObject(c *Call, runtime string, data []byte, into any) error {
	if jsontext.Value(data).Kind() != '{' {
		return fmt.Errorf("the payload on stdin is %s, but %s sends one JSON object to a hook", kindOf(data), runtime)
	}
	if err := schema.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading the payload on stdin as one of %s: %w; name the runtime that runs this hook with --runtime", runtime, err)
	}
	c.Payload = data
	return nil
}

// tool sets the tool call of the event. An input that is not an object is an error, because the fabric
// cannot judge it.
func (c *Call) tool(runtime, name string, input jsontext.Value) error {
	e := &c.Event
	e.ToolName, e.ToolInput = name, present(input)
	e.ToolKind, e.ToolArgs = normalise(runtime, name, e.ToolInput)
	switch {
	case name == "":
		return fmt.Errorf("the payload on stdin names no tool, but %s names one at %s; correct --runtime or --event", runtime, c.Moment.Name)
	case e.ToolInput == nil && e.HookType == schema.PreToolUse || e.ToolInput != nil && e.ToolInput.Kind() != '{':
		shown := kindOf(e.ToolInput)
		e.ToolInput = nil
		return fmt.Errorf("the input of the tool %.64q on stdin is %s; it must be a JSON object", name, shown)
	}
	return nil
}

// prompted sets the prompt of the event. An empty prompt is valid, such as that of a message with only
// an image. A missing prompt is an error, because no hook could judge it.
func (c *Call) prompted(runtime string, prompt *string) error {
	if prompt == nil {
		return unnamed(runtime, "prompt")
	}
	c.Event.Prompt = *prompt
	return nil
}

// phase returns the phase of a tool's event in its keys.
func (c *Call) phase() string {
	if c.Event.HookType == schema.PreToolUse {
		return before
	}
	return after
}

// label adds members of the payload to the event's labels, as name, value, name, value. It omits
// values that are neither a string nor true.
func (c *Call) label(pairs ...any) {
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		v, _ := pairs[i+1].(jsontext.Value)
		value := word(v)
		if v.Kind() == 't' {
			value = "true"
		}
		if value == "" {
			continue
		}
		if c.Event.Labels == nil {
			c.Event.Labels = map[string]string{}
		}
		c.Event.Labels[name] = clip(value)
	}
}

// parsed returns the JSON inside a string, or else v itself.
func parsed(v jsontext.Value) jsontext.Value {
	s := strings.TrimSpace(word(v))
	if s == "" {
		return present(v)
	}
	if inner := jsontext.Value(s); (inner.Kind() == '{' || inner.Kind() == '[') && inner.IsValid() {
		return inner
	}
	return v
}

// parts are the members of an answer.
type parts map[string]any

// say returns an answer with these members. If it cannot encode them, it refuses where that is
// possible, because an invalid answer would let the call pass.
func (o parts) say(d Dialect, m Moment) (Answer, error) {
	data, err := schema.Marshal(map[string]any(o))
	if err != nil {
		err = fmt.Errorf("encoding the answer: %w", err)
		if refusable(m) {
			return d.Refuse(m, err.Error()), nil
		}
		return Answer{}, err
	}
	return Answer{Stdout: append(data, '\n')}, nil
}

// spoken returns a reason that is not empty. Runtimes ignore an empty reason, and some take a denial
// with an empty reason for an allow.
func spoken(reason string) string { return first(strings.TrimSpace(reason), noReason) }

// why returns the reason of a refusal, with the value that a stop has for the tool's output.
func why(v *schema.Verdict) string {
	reason := strings.TrimSpace(v.Reason + "\n" + Text(v.Value))
	if v.Terminate != nil {
		reason = first(reason, v.Terminate.Reason)
	}
	return spoken(reason)
}

// ends reports whether v ends the run.
func ends(v *schema.Verdict) bool {
	return v.Terminate != nil || v.Decision == schema.Stop || v.Decision == schema.Fail
}

// whyEnds returns the reason for the end of a run.
func whyEnds(t schema.EventType, v *schema.Verdict) string {
	text := Text(v.Value)
	if t.StopValue() == schema.MessageValue {
		text = messageText(v.Value)
	}
	reason := strings.TrimSpace(v.Reason + "\n" + text)
	if v.Terminate != nil {
		reason = first(strings.TrimSpace(v.Terminate.Reason), reason)
	}
	return first(reason, stopReason)
}

// feedback returns what is wrong with a call that has run, in words for the model; empty: nothing is
// wrong.
func feedback(v *schema.Verdict) string {
	if refuses(v) {
		return why(v)
	}
	return ""
}

// GoesOn returns the text with which the agent continues at the end of its turn: the reason of a
// retry, and the injections; empty: the turn ends. If the agent already continues because of a hook,
// only a retry or an injection that waited for the agent keeps it going.
func GoesOn(c *Call, v *schema.Verdict) string {
	told := texts(v.Injections)
	switch {
	case ends(v):
		return ""
	case v.Decision == schema.Retry:
		return together(first(strings.TrimSpace(v.Reason), retryReason), told)
	case c.PutOff() && !slices.ContainsFunc(v.Injections, Waited):
		return ""
	}
	return told
}

// Waited reports whether an injection comes once only: it waited for the agent, or is not from a hook.
func Waited(in schema.Injection) bool { return in.Sequence > 0 || in.Hook == "" }

// PutOff reports whether a hook has already put off the end of this turn.
func (c *Call) PutOff() bool { return c.Event.Labels[putOff] != "" }

// putOff is the label of such an end, under the name that most runtimes use.
const putOff = "stop_hook_active"

// together joins the texts that are not empty.
func together(all ...string) string {
	var said []string
	for _, t := range all {
		if t != "" {
			said = append(said, t)
		}
	}
	return strings.Join(said, "\n\n")
}

// withTimeout sets the default timeout of moments that have no timeout of their own.
func withTimeout(d time.Duration, all []Moment) []Moment {
	for i := range all {
		if all[i].Timeout == 0 {
			all[i].Timeout = d
		}
	}
	return all
}

// unasked returns moments that the fabric does not judge.
func unasked(names ...string) (all []Moment) {
	for _, name := range names {
		all = append(all, Moment{Name: name})
	}
	return all
}

// unnamed returns the error for a payload without a member that its runtime always sends.
func unnamed(runtime, member string) error {
	return fmt.Errorf("the payload on stdin has no %s, which %s always sends; name the runtime that runs this hook with --runtime", member, runtime)
}

// env looks up one of [Environment].
func (in Input) env(name string) string {
	if in.Env == nil {
		return ""
	}
	return in.Env(name)
}
