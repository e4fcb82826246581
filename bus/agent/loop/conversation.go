package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A conversation is the agent's state: its messages and flags.
type conversation struct {
	mu      sync.Mutex // guards the fields below and every aside
	entries []entry
	next    int
	flags   map[string]jsontext.Value
}

// An entry is a message with an id.
type entry struct {
	id int
	m  schema.Message
}

// An aside has the messages that hooks of one tool call add before the turn's results are
// in the conversation. They follow the results, in the order of the calls.
type aside struct{ messages []schema.Message }

// add appends messages to the aside, or without one to the conversation, and returns the
// last one's id.
func (c *conversation) add(to *aside, messages ...schema.Message) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to != nil {
		to.messages = append(to.messages, messages...)
		return 0
	}
	for _, m := range messages {
		c.next++
		c.entries = append(c.entries, entry{c.next, m})
	}
	return c.next
}

// replace replaces the message of an entry. It does nothing if the entry was removed.
func (c *conversation) replace(id int, m schema.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.entries, func(e entry) bool { return e.id == id }); i >= 0 {
		c.entries[i].m = m
	}
}

// reset replaces the whole conversation.
func (c *conversation) reset(messages ...schema.Message) {
	c.mu.Lock()
	c.entries = nil
	c.mu.Unlock()
	c.add(nil, messages...)
}

// clear removes all flags.
func (c *conversation) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flags = nil
}

// messages returns a copy of the conversation, followed by the aside.
func (c *conversation) messages(and *aside) []schema.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]schema.Message, 0, len(c.entries))
	for i := range c.entries {
		all = append(all, cloneMessage(c.entries[i].m))
	}
	if and != nil {
		for _, m := range and.messages {
			all = append(all, cloneMessage(m))
		}
	}
	return all
}

// drop removes messages.
func (c *conversation) drop(and *aside, d *schema.DropMessages) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]schema.Message, 0, len(c.entries))
	for i := range c.entries {
		all = append(all, c.entries[i].m)
	}
	if and != nil {
		all = append(all, and.messages...)
	}
	picked := d.Picks(all)
	i := -1
	next := func() bool { i++; return picked[i] }
	c.entries = slices.DeleteFunc(c.entries, func(entry) bool { return next() })
	if and != nil {
		and.messages = slices.DeleteFunc(and.messages, func(schema.Message) bool { return next() })
	}
}

// set sets flags, and removes those that are null.
func (c *conversation) set(flags map[string]jsontext.Value) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := maps.Clone(c.flags)
	if next == nil {
		next = map[string]jsontext.Value{}
	}
	for name, v := range flags {
		if len(v) == 0 || v.Kind() == 'n' {
			delete(next, name)
		} else {
			next[name] = v.Clone()
		}
	}
	if len(next) > schema.MaxFlags {
		return fmt.Errorf("the agent would have %d flags; it has at most %d", len(next), schema.MaxFlags)
	}
	c.flags = next
	return nil
}

// copyFlags returns a copy of the flags.
func (c *conversation) copyFlags() map[string]jsontext.Value {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.flags)
}

// apply applies a valid effect.
func (c *conversation) apply(to *aside, e *schema.Effect) error {
	switch {
	case e.AppendMessage != nil:
		c.add(to, schema.Message{Role: first(e.AppendMessage.Role, schema.RoleSystem), Content: e.AppendMessage.Content})
	case e.DropMessages != nil:
		c.drop(to, e.DropMessages)
	case e.SetFlag != nil:
		return c.set(e.SetFlag)
	}
	return nil
}

// cloneMessage returns a deep copy of m.
func cloneMessage(m schema.Message) schema.Message {
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range m.ToolCalls {
		m.ToolCalls[i].Input = m.ToolCalls[i].Input.Clone()
	}
	m.Native = m.Native.Clone()
	if m.Result != nil {
		out := cloneOutcome(*m.Result)
		m.Result = &out
	}
	return m
}

func cloneOutcome(o schema.ToolOutcome) schema.ToolOutcome {
	o.Output, o.Notes = o.Output.Clone(), slices.Clone(o.Notes)
	return o
}

// revised returns m in the place of old. The API's own form is dropped, because it
// describes the old message.
func revised(old, m schema.Message) schema.Message {
	m.Role, m.Result = schema.RoleAssistant, nil
	if bytes.Equal(old.Native, m.Native) && (old.Content != m.Content || !slices.EqualFunc(old.ToolCalls, m.ToolCalls, sameCall)) {
		m.Native = nil
	}
	return m
}

// sound makes a model's message encodable as JSON: invalid input of a call becomes a
// string, which no tool accepts.
func sound(m schema.Message) schema.Message {
	m.Role = schema.RoleAssistant
	if len(m.Native) > 0 && !m.Native.IsValid(jsontext.AllowInvalidUTF8(true)) {
		m.Native = nil
	}
	for i := range m.ToolCalls {
		if in := &m.ToolCalls[i].Input; len(*in) > 0 && !in.IsValid(jsontext.AllowInvalidUTF8(true)) {
			*in = asJSON(string(*in))
		}
	}
	return m
}

func sameCall(a, b schema.ToolCall) bool {
	return a.ID == b.ID && a.Name == b.Name && bytes.Equal(a.Input, b.Input)
}

// closing returns a query's last message without its calls, because they are never made.
func closing(m schema.Message) schema.Message {
	m.Role, m.Result = schema.RoleAssistant, nil
	if len(m.ToolCalls) > 0 {
		m.ToolCalls, m.Native = nil, nil
	}
	return m
}

// An Effect changes the agent's state when its hook runs.
type Effect struct {
	data *schema.Effect
	f    func(context.Context, *Status) error
	err  error
}

// Append adds a message to the conversation; role "" is system.
func Append(role, content string) Effect {
	return Effect{data: &schema.Effect{AppendMessage: &schema.AppendMessage{Role: role, Content: content}}}
}

// SetFlag sets a flag of the agent; nil removes it.
func SetFlag(name string, value any) Effect {
	data, err := flag(name, value)
	return Effect{data: data, err: err}
}

// flag returns the effect that sets one flag.
func flag(name string, value any) (*schema.Effect, error) {
	data, err := schema.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("the flag %.40q cannot be written as JSON: %w", name, err)
	}
	return &schema.Effect{SetFlag: map[string]jsontext.Value{name: data}}, nil
}

// DropMessages removes messages from the conversation.
func DropMessages(d schema.DropMessages) Effect {
	return Effect{data: &schema.Effect{DropMessages: &d}}
}

// EffectFunc returns the effect of a function that changes the agent through its status.
func EffectFunc(f func(ctx context.Context, s *Status) error) Effect { return Effect{f: f} }

// check returns what is wrong with an effect.
func (e *Effect) check() error {
	switch {
	case e.err != nil:
		return e.err
	case e.data != nil:
		return e.data.Check()
	case e.f == nil:
		return errors.New("it is nil; write a function")
	}
	return nil
}

// do applies the effect.
func (e *Effect) do(ctx context.Context, s *Status) error {
	if e.f != nil {
		return e.f(ctx, s)
	}
	return s.change(e.data)
}

// A Status is a hook's view of the event and the agent. It is valid until the hook's time is
// up. Later changes return an error.
type Status struct {
	// LoopStatus describes the event with the same fields as conditions of remote hooks. Values
	// are as the earlier hooks left them.
	schema.LoopStatus

	moment *moment
	life   *life
}

// errOver is the error when a function changes the status after its hook's time is up.
var errOver = errors.New("the hook has ended; its status cannot change the agent any more")

// life is whether a hook may still change the agent.
type life struct {
	mu   sync.Mutex // guards over, and is held during a change
	over bool
}

func (l *life) end() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
}

// change applies an effect while the hook runs.
func (s *Status) change(e *schema.Effect) error {
	if err := e.Check(); err != nil {
		return err
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	if s.life.over {
		return errOver
	}
	return s.moment.apply(e)
}

// Append adds a message at the end of the conversation; role "" is system. While tools run, it
// adds the message after the results of the turn.
func (s *Status) Append(role, content string) error {
	return s.change(&schema.Effect{AppendMessage: &schema.AppendMessage{Role: role, Content: content}})
}

// SetFlag sets a flag of the agent; nil removes it.
func (s *Status) SetFlag(name string, value any) error {
	e, err := flag(name, value)
	if err != nil {
		return err
	}
	return s.change(e)
}

// Drop removes messages from the conversation. A turn whose tools still run stays.
func (s *Status) Drop(d schema.DropMessages) error {
	return s.change(&schema.Effect{DropMessages: &d})
}

// History returns a copy of the current conversation. It does not contain the model's message
// at AfterLLMCall, but does at BeforeFinalResponse. While tools run, it does not contain the
// results of the turn.
func (s *Status) History() []schema.Message { return s.moment.history() }

// Flags returns a copy of the agent's flags.
func (s *Status) Flags() map[string]jsontext.Value { return s.moment.run.loop.conversation.copyFlags() }

// Prompt returns the prompt of the query.
func (s *Status) Prompt() string { return s.moment.run.prompt }

// Response returns the result of the query at QueryEnd, and the zero Response at other events.
func (s *Status) Response() Response {
	r, _ := s.moment.currentValue().(Response)
	return r.clone()
}
