package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// A moment is one event of a query while its hooks run, and their verdict.
type moment struct {
	run *run
	// event is the event for remote hooks, with the current value.
	event schema.Event
	// aside is the tool call's; nil: the event is not about a call.
	aside *aside

	mu sync.Mutex // guards value, because a hook whose time is up may still read it
	// value is the value that hooks replace: a Message, ToolCall, ToolOutcome or
	// Response; nil: the event has none. before is the original.
	value, before any
	// stop is the value of an in-process hook's stop.
	stop any
	// remoteVerdict is the fabric's verdict; nil: it was not asked.
	remoteVerdict *schema.Verdict

	verdict schema.Verdict
}

// at makes an event about v; nil: it has no value.
func (r *run) at(t schema.EventType, v any, to *aside) *moment {
	m := &moment{run: r, aside: to, value: v, before: v, event: r.event(t)}
	switch v := v.(type) {
	case schema.ToolCall:
		m.event.ToolName, m.event.ToolUseID = v.Name, v.ID
		m.setValue(v)
	case nil:
	default:
		m.setValue(v)
	}
	return m
}

// setValue makes v the current value.
func (m *moment) setValue(v any) {
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

// asJSON encodes a value whose encoding cannot fail.
func asJSON(v any) jsontext.Value {
	data, err := schema.Marshal(v)
	if err != nil {
		return jsontext.Value("null")
	}
	return data
}

// currentValue returns the current value.
func (m *moment) currentValue() any {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.value
}

// startingValue returns a copy of the value that a hook with that decision starts from.
func (m *moment) startingValue(d schema.Decision) any {
	v := m.currentValue()
	if c, ok := v.(schema.ToolCall); ok && d == schema.Stop {
		return schema.ToolOutcome{ID: c.ID, Name: c.Name}
	}
	return copied(v)
}

// status returns the view of a hook's functions.
func (m *moment) status() *Status {
	s := &Status{moment: m, life: &life{}}
	s.Event, s.Agent, s.Iteration = m.event.HookType, m.event.AgentID, m.event.Iteration
	switch v := copied(m.currentValue()).(type) {
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

// history returns the conversation as the hooks of the event see it.
func (m *moment) history() []schema.Message { return m.run.loop.conversation.messages(m.aside) }

// apply applies an effect to the agent.
func (m *moment) apply(e *schema.Effect) error { return m.run.loop.conversation.apply(m.aside, e) }

// encodeValue encodes an in-process hook's value into its result, so that it is judged
// like a remote hook's.
func (m *moment) encodeValue(r *schema.Result, v any) error {
	data, err := written(m.currentValue(), v)
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

// judge runs the hooks of the program and of the fabric, in the order of the options.
func (m *moment) judge(ctx context.Context) {
	sides := []func(context.Context){m.local, m.remote}
	if m.run.loop.opt.Order == RemoteFirst {
		sides[0], sides[1] = sides[1], sides[0]
	}
	for _, side := range sides {
		if !m.ended() {
			side(ctx)
		}
	}
	if v := m.remoteVerdict; v != nil { // in-process hooks cannot remove these
		m.verdict.EventID, m.verdict.Restart, m.verdict.Terminate = v.EventID, v.Restart, v.Terminate
		m.verdict.ConfigVersion, m.verdict.Fabric = v.ConfigVersion, v.Fabric
	}
	dispatch.KeepFeedback(m.event.HookType, &m.verdict)
	if m.event.HookType.Chains() && m.verdict.Decision != schema.Stop && m.ended() {
		m.setValue(m.before) // a decision that ends the chain drops rewrites
	}
	if m.verdict.Decision == schema.None {
		m.verdict.Decision = schema.Continue
	}
}

// ended reports whether no further hook runs.
func (m *moment) ended() bool { return m.verdict.Ended(m.event.HookType) }

// fold adds the verdict of one hook or of the fabric.
func (m *moment) fold(v schema.Verdict) {
	m.verdict = dispatch.Fold(m.event.HookType, m.verdict, v)
}

// local runs the in-process hooks.
func (m *moment) local(ctx context.Context) {
	for _, h := range m.run.loop.at(m.event.HookType) {
		o, value, asked := h.ask(ctx, m)
		if !asked {
			continue
		}
		v := dispatch.Settle(&h.spec, &o)
		m.fold(v)
		if value != nil && v.ExecutedHooks[0].Outcome == schema.OK {
			m.useValue(v.Decision, value)
		}
		if m.ended() {
			return
		}
	}
}

// useValue applies an in-process hook's value.
func (m *moment) useValue(d schema.Decision, v any) {
	if chains := m.event.HookType.Chains(); chains && d == schema.Stop {
		m.stop = v
		return
	} else if chains && m.event.HookType.Terminal(d) {
		return
	}
	switch next := v.(type) {
	case schema.Message:
		old, _ := m.currentValue().(schema.Message)
		m.setValue(revised(old, next))
	case schema.ToolOutcome:
		old, _ := m.currentValue().(schema.ToolOutcome)
		next.ID, next.Name = old.ID, old.Name
		m.setValue(next)
	case Response:
		old, _ := m.currentValue().(Response)
		m.setValue(old.revised(next))
	default:
		m.setValue(v)
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
	m.run.loop.unread.add(l.opt.Fabric, v)
	for _, e := range v.Effects {
		if err := m.effect(e); err != nil {
			v.HookErrors = append(v.HookErrors, fmt.Sprintf("effect dropped: %v", err))
		}
	}
	m.rejectUnknown(v)
	if rewrite := v.Rewritten(m.event.HookType); rewrite != nil {
		if err := m.rewrite(rewrite, v.Value != nil); err != nil {
			m.block(v, fmt.Errorf("a rewrite was dropped: %w", err))
		}
	}
	m.remoteVerdict = v
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

// rejectUnknown blocks a verdict with an unknown decision or an unreadable stop, so that
// it never counts as an allow.
func (m *moment) rejectUnknown(v *schema.Verdict) {
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

// block applies what a failed fail-closed hook would decide, because this program cannot
// do what the verdict says.
func (m *moment) block(v *schema.Verdict, why error) {
	v.HookErrors = append(v.HookErrors, why.Error())
	if d := m.event.HookType.Blocking(); d != schema.None {
		v.Decision, v.Reason, v.Value = d, why.Error(), nil
	}
}

// rewrite applies a remote hook's rewrite. stopped means that it is the value of a stop,
// if the event has tool output.
func (m *moment) rewrite(data jsontext.Value, stopped bool) error {
	switch old := m.currentValue().(type) {
	case schema.ToolCall:
		if data.Kind() != '{' {
			return fmt.Errorf("the input is %s; write the tool's whole input as an object", schema.KindName(data.Kind()))
		}
		old.Input = data
		m.setValue(old)
	case schema.ToolOutcome:
		old.Output = data
		if stopped {
			old.Error = "" // the value is the whole result
		}
		m.setValue(old)
	case schema.Message:
		next, err := readMessage(old, data)
		if err != nil {
			return err
		}
		m.setValue(next)
	case Response:
		next, err := old.read(data)
		if err != nil {
			return err
		}
		m.setValue(next)
	}
	return nil
}

// readMessage decodes a replacement of a message. A text replaces only the message's
// text, and its calls stay.
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

// message returns the message in a stop's value.
func (m *moment) message() schema.Message {
	if v, ok := m.stop.(schema.Message); ok {
		return v
	}
	v, err := schema.ReadMessage(m.verdict.Value) // rejectUnknown has checked it
	if err != nil {
		return schema.AssistantText("")
	}
	return v
}

// guarded runs a user's function until it returns or ctx ends. A function that ignores
// ctx keeps running and its result is dropped. A panic is an error. what names the
// function in errors.
func guarded[T any](ctx context.Context, what string, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: fmt.Errorf("%s ended its goroutine", what)}
		defer func() {
			if p := recover(); p != nil {
				a = answer{err: fmt.Errorf("%s panicked: %v", what, p)}
			}
			answers <- a
		}()
		v, err := f(ctx)
		a = answer{v, err}
	}()
	select {
	case a := <-answers:
		return a.v, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-answers:
		return a.v, a.err
	default:
		return *new(T), context.Cause(ctx)
	}
}

// first returns the first text that is not blank.
func first(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return t
		}
	}
	return ""
}
