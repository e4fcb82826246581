package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// A moment is one event of a query, from before anybody was asked to its verdict.
type moment struct {
	run *run
	// event is what remote hooks are asked about, with the value as it is now.
	event schema.Event
	// aside is the tool call's; nil: it is about none.
	aside *aside

	mu sync.Mutex // guards value: a hook that is over may still look at it
	// value is what flows through the hooks: a Message, ToolCall, ToolOutcome or
	// Response; nil: nothing does. before is how it came.
	value, before any
	// stop is the value of an in-process hook's stop.
	stop any
	// far is what the fabric said; nil: it was not asked.
	far *schema.Verdict

	verdict schema.Verdict
}

// at is an event that is about v, or about nothing.
func (r *run) at(t schema.EventType, v any, to *aside) *moment {
	m := &moment{run: r, aside: to, value: v, before: v, event: r.event(t)}
	switch v := v.(type) {
	case schema.ToolCall:
		m.event.ToolName, m.event.ToolUseID = v.Name, v.ID
		m.put(v)
	case nil:
	default:
		m.put(v)
	}
	return m
}

// put makes v the current value.
func (m *moment) put(v any) {
	m.mu.Lock()
	m.value = v
	m.mu.Unlock()
	switch v := v.(type) {
	case schema.ToolCall:
		m.event.ToolInput = v.Input
		m.event.ToolKind, m.event.ToolArgs = schema.ToolFacts(m.event.Runtime, v.Name, v.Input)
	case schema.ToolOutcome:
		m.event.ToolOutput, m.event.Error = v.Output, v.Error
	case schema.Message:
		m.event.Message = asJSON(v)
	case Response:
		m.event.Response = asJSON(v)
	}
}

// asJSON encodes what always can be.
func asJSON(v any) jsontext.Value {
	data, err := schema.Marshal(v)
	if err != nil {
		return jsontext.Value("null")
	}
	return data
}

// seen is the current value.
func (m *moment) seen() any {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.value
}

// current is a copy of what a hook with that decision makes its value from.
func (m *moment) current(d schema.Decision) any {
	v := m.seen()
	if c, ok := v.(schema.ToolCall); ok && d == schema.Stop {
		return schema.ToolOutcome{ID: c.ID, Name: c.Name}
	}
	return copied(v)
}

// status is what a hook's functions see.
func (m *moment) status() *Status {
	s := &Status{moment: m, life: &life{}}
	s.Event, s.Agent, s.Iteration = m.event.HookType, m.event.AgentID, m.event.Iteration
	switch v := copied(m.seen()).(type) {
	case schema.ToolCall:
		s.ToolCall = &v
	case schema.ToolOutcome:
		s.ToolResult = &v
		if s.Event == schema.ToolError {
			s.Error = v.Error
		}
	case schema.Message:
		s.AssistantMessage = &v
	}
	return s
}

// history is the conversation as the moment's hooks see it.
func (m *moment) history() []schema.Message { return m.run.loop.talk.messages(m.aside) }

// apply has an effect on the agent.
func (m *moment) apply(e *schema.Effect) error { return m.run.loop.talk.apply(m.aside, e) }

// carry writes an in-process hook's value into its result, so that it is judged as
// any other hook's.
func (m *moment) carry(r *schema.Result, v any) error {
	data, err := written(m.seen(), v)
	if err != nil {
		return err
	}
	switch {
	case r.Decision == schema.Stop:
		r.Value = data
	case m.event.HookType.Rewrites() == schema.RewriteInput:
		r.UpdatedInput = data
	case m.event.HookType.Rewrites() == schema.RewriteOutput:
		r.UpdatedOutput = data
	default:
		r.Value = data
	}
	return nil
}

// judge asks everybody, in the order that the loop has.
func (m *moment) judge(ctx context.Context) {
	sides := []func(context.Context){m.local, m.remote}
	if m.run.loop.opt.Order == RemoteFirst {
		sides[0], sides[1] = sides[1], sides[0]
	}
	for _, side := range sides {
		if !m.over() {
			side(ctx)
		}
	}
	if v := m.far; v != nil { // no decision of the program's takes any of this away
		m.verdict.EventID, m.verdict.Restart, m.verdict.Terminate = v.EventID, v.Restart, v.Terminate
		m.verdict.ConfigVersion, m.verdict.Fabric = v.ConfigVersion, v.Fabric
	}
	dispatch.KeepFeedback(m.event.HookType, &m.verdict)
	if m.event.HookType.Chains() && m.verdict.Decision != schema.Stop && m.over() {
		m.put(m.before) // what was rewritten before an end does not count
	}
	if m.verdict.Decision == schema.None {
		m.verdict.Decision = schema.Continue
	}
}

// over reports whether nobody else is asked.
func (m *moment) over() bool { return m.verdict.Ended(m.event.HookType) }

// fold takes in what one side, or one hook, says after all before it.
func (m *moment) fold(v schema.Verdict) {
	m.verdict = dispatch.Fold(m.event.HookType, m.verdict, v)
}

// local asks the in-process hooks.
func (m *moment) local(ctx context.Context) {
	for _, h := range m.run.loop.at(m.event.HookType) {
		o, value, asked := h.ask(ctx, m)
		if !asked {
			continue
		}
		v := dispatch.Settle(&h.spec, &o)
		m.fold(v)
		if value != nil && v.ExecutedHooks[0].Outcome == schema.OK {
			m.take(v.Decision, value)
		}
		if m.over() {
			return
		}
	}
}

// take makes an in-process hook's value count.
func (m *moment) take(d schema.Decision, v any) {
	if chains := m.event.HookType.Chains(); chains && d == schema.Stop {
		m.stop = v
		return
	} else if chains && m.event.HookType.Terminal(d) {
		return
	}
	switch next := v.(type) {
	case schema.Message:
		old, _ := m.seen().(schema.Message)
		m.put(revised(old, next))
	case schema.ToolOutcome:
		old, _ := m.seen().(schema.ToolOutcome)
		next.ID, next.Name = old.ID, old.Name
		m.put(next)
	case Response:
		old, _ := m.seen().(Response)
		m.put(old.revised(next))
	default:
		m.put(v)
	}
}

// remote asks the fabric.
func (m *moment) remote(ctx context.Context) {
	l := m.run.loop
	if l.opt.Fabric == nil {
		return
	}
	v, err := m.run.ask(ctx, m)
	if err != nil {
		v = m.unjudged(err)
	}
	m.run.loop.waiting.brought(l.opt.Fabric, v)
	for _, e := range v.Effects {
		if err := m.effect(e); err != nil {
			v.HookErrors = append(v.HookErrors, fmt.Sprintf("effect dropped: %v", err))
		}
	}
	m.known(v)
	if rewrite := v.Rewritten(m.event.HookType); rewrite != nil {
		if err := m.rewrite(rewrite, v.Value != nil); err != nil {
			m.block(v, fmt.Errorf("a rewrite was dropped: %w", err))
		}
	}
	m.far = v
	m.fold(*v)
}

// effect applies one of a verdict's effects.
func (m *moment) effect(data jsontext.Value) error {
	e, err := schema.ParseEffect(data)
	if err != nil {
		return err
	}
	return m.apply(&e)
}

// known makes of a decision that this program does not know, or whose value cannot
// be read, what a hook that gave no answer makes of it: never a yes.
func (m *moment) known(v *schema.Verdict) {
	t := m.event.HookType
	var why error
	switch {
	case !t.Permits(v.Decision) && v.Decision != schema.Continue:
		why = fmt.Errorf("the fabric decided %.40q; at %s this program knows %s", v.Decision, t, decisions(t))
	case v.Decision == schema.Stop && t.StopValue() == schema.MessageValue:
		_, why = schema.ReadMessage(v.Value)
	case v.Decision == schema.Stop && len(v.Value) == 0:
		why = errors.New("the fabric decided stop without a value")
	}
	if why != nil {
		v.Decision, v.Reason, v.Value = schema.None, "", nil
		m.block(v, why)
	}
}

// block makes of what this program cannot do as it was told what a hook that gave no
// answer makes of the moment: it does not go on as if it had not been told.
func (m *moment) block(v *schema.Verdict, why error) {
	v.HookErrors = append(v.HookErrors, why.Error())
	if d := m.event.HookType.Blocking(); d != schema.None {
		v.Decision, v.Reason, v.Value = d, why.Error(), nil
	}
}

// rewrite puts a remote hook's rewrite in; stopped: it is the value of a stop, if the
// event has tool output.
func (m *moment) rewrite(data jsontext.Value, stopped bool) error {
	switch old := m.seen().(type) {
	case schema.ToolCall:
		if data.Kind() != '{' {
			return fmt.Errorf("the input is %s; write the tool's whole input as an object", schema.KindName(data.Kind()))
		}
		old.Input = data
		m.put(old)
	case schema.ToolOutcome:
		old.Output = data
		if stopped {
			old.Error = "" // its value is the whole result
		}
		m.put(old)
	case schema.Message:
		next, err := readMessage(old, data)
		if err != nil {
			return err
		}
		m.put(next)
	case Response:
		next, err := old.read(data)
		if err != nil {
			return err
		}
		m.put(next)
	}
	return nil
}

// readMessage reads what takes a message's place. A text takes the place of its
// text only, so that whoever mends words cancels no calls.
func readMessage(old schema.Message, data jsontext.Value) (schema.Message, error) {
	next, err := schema.ReadMessage(data)
	if err == nil && data.Kind() == '"' {
		next.ToolCalls = old.ToolCalls
	}
	return revised(old, next), err
}

// unjudged returns the verdict for an event that the fabric did not judge. It never allows what
// a known fail-closed hook guards.
func (m *moment) unjudged(err error) *schema.Verdict {
	v := &schema.Verdict{HookErrors: []string{fmt.Sprintf("no broker judged this: %v", err)}}
	if z, terminal := m.run.loop.opt.Fabric.Frozen(&m.event); z != nil {
		v.Decision, v.Frozen, v.Reason = m.event.HookType.Blocking(), true, z.Refusal(m.event.ToolName, terminal)
		return v
	}
	why := "the agent does nothing without a verdict"
	if m.run.loop.opt.Unreachable == Allow {
		h := m.run.loop.opt.Fabric.Guard(&m.event)
		if h == nil {
			return v
		}
		why = fmt.Sprintf("the fail-closed hook %q guards this", h.Hook)
	}
	if v.Decision = m.event.HookType.Blocking(); v.Decision != schema.None {
		v.Reason = fmt.Sprintf("no broker judged this, and %s: %v", why, err)
	}
	return v
}

// message is a stop's value where it is one.
func (m *moment) message() schema.Message {
	if v, ok := m.stop.(schema.Message); ok {
		return v
	}
	v, err := schema.ReadMessage(m.verdict.Value) // known has read it before
	if err != nil {
		return schema.AssistantText("")
	}
	return v
}
