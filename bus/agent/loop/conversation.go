package loop

import (
	"bytes"
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
