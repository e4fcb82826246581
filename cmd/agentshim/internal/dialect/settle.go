package dialect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// begun is the call of a payload that was not read yet.
func begun(in Input) *Call {
	return &Call{Moment: in.Moment, Event: schema.Event{HookType: in.Moment.Event}}
}

// inParent has nothing asked where a subagent's own session begins or ends: that of its agent
// goes on.
func (c *Call) inParent() bool {
	t := c.Event.HookType
	own := c.Parent != "" && (t == schema.SessionStart || t == schema.SessionEnd)
	if own {
		c.become(Moment{Name: c.Moment.Name})
	}
	return own
}

// become makes c a call at m, with other abilities than the one it was at, or
// another event.
func (c *Call) become(m Moment) { c.Moment, c.Event.HookType = m, m.Event }

// settle finds out at which moment c is: at the one that the command line names,
// or at the one that the payload does, and the two must agree. A runtime that
// never names it gives no name.
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

// readObject reads a payload that is one JSON object.
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

// tool puts a call of a tool into the event. An input that is no object is no
// call that anybody could judge.
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

// prompted puts the prompt into the event. An empty one is one, as of a message that is
// only an image; without a text, no hook could judge what the agent gets.
func (c *Call) prompted(runtime string, prompt *string) error {
	if prompt == nil {
		return unnamed(runtime, "prompt")
	}
	c.Event.Prompt = *prompt
	return nil
}

// phase is that of a tool's event, as keys name it.
func (c *Call) phase() string {
	if c.Event.HookType == schema.PreToolUse {
		return before
	}
	return after
}

// label puts words of the payload into the event's labels, as name, value, name,
// value; what is no word is left out.
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

// parsed is JSON that a runtime wrote into a string, or v itself.
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

// say writes an answer of these members. What cannot be encoded is refused
// where that is possible: an answer that is none would let the call pass.
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

// spoken is a reason with words in it: runtimes take one without for none, and
// some take a no without a reason for a yes.
func spoken(reason string) string { return first(strings.TrimSpace(reason), noReason) }

// why is the reason of a refusal, with what a stop puts in the tool's place.
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

// whyEnds is the reason for the end of a run.
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

// feedback is what is wrong with a call that was made, in words for the model;
// empty: nothing is.
func feedback(v *schema.Verdict) string {
	if refuses(v) {
		return why(v)
	}
	return ""
}

// GoesOn is what the agent goes on with at the end of its turn: why it is to, and
// what hooks inject; empty: it ends. Where it already goes on because of a hook,
// what hooks always say is no reason any more, and what waited for the agent is.
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

// Waited reports whether an injection comes once only: it waited for the agent,
// or is no hook's.
func Waited(in schema.Injection) bool { return in.Sequence > 0 || in.Hook == "" }

// PutOff reports whether it is an end of a turn that a hook already put off once.
func (c *Call) PutOff() bool { return c.Event.Labels[putOff] != "" }

// putOff is the label of such an end, as most runtimes name it.
const putOff = "stop_hook_active"

// together puts texts into one, without those that are empty.
func together(all ...string) string {
	var said []string
	for _, t := range all {
		if t != "" {
			said = append(said, t)
		}
	}
	return strings.Join(said, "\n\n")
}

// withTimeout gives moments how long their runtime waits.
func withTimeout(d time.Duration, all []Moment) []Moment {
	for i := range all {
		if all[i].Timeout == 0 {
			all[i].Timeout = d
		}
	}
	return all
}

// moments are events that nobody is asked about.
func unasked(names ...string) (all []Moment) {
	for _, name := range names {
		all = append(all, Moment{Name: name})
	}
	return all
}

// unnamed says that a payload lacks what its runtime always sends.
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
