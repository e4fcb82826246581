package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// History supplies the conversation to hooks that need it. Ask calls messages at most once,
// before it returns, and only if a hook of the event needs the conversation. It reads the
// result only until then and does not change it. If the event has a History, Ask uses that and
// does not call messages.
//
// The client stores older messages in the fabric and sends only new ones with an event. It has
// a part of the event's time to do so. If it cannot store them in time, the hooks that need the
// conversation fail.
func History(messages func() []schema.Message) AskOption {
	return func(a *ask) { a.history = messages }
}

// unneeded is the reason in an event whose conversation was left out. A hook that needs
// it by now must not mistake it for an empty one.
const unneeded = "no hook was known to need it when the event was asked about"

// omit records in an event why its conversation is missing.
func (a *ask) omit(why string) {
	const longest = 500
	a.event.History, a.parts = nil, nil
	a.event.HistoryRef = schema.HistoryLost + strings.ToValidUTF8(why[:min(len(why), longest)], "")
}

// addConversation adds the parts of the conversation that the event's hooks need, and
// removes it if no hook does.
func (c *Client) addConversation(ctx context.Context, a *ask) {
	e := &a.event
	inline := len(e.History) > 0
	switch {
	case !inline && a.history == nil, inline && e.History.Kind() != '[':
		return // there is no conversation, or it is invalid and judged as it is
	case e.HistoryRef != "" && !schema.HistoryFile(e.HistoryRef):
		return // a second attempt uses the parts of the first
	case !c.isNeeded(ctx, e):
		a.omit(unneeded)
		return
	}
	lines, err := a.lines(inline)
	if err != nil {
		a.omit(err.Error())
		return
	}
	parts, rest := cut(lines, c.mostPart())
	if len(parts) > schema.MaxHistoryParts {
		a.omit(fmt.Sprintf("it has %d parts, and an event names at most %d", len(parts), schema.MaxHistoryParts))
		return
	}
	if a.parts, err = c.storeParts(ctx, e.AgentID, parts); err != nil {
		c.log.Debug("a conversation could not be stored", "agent", e.AgentID, "error", err)
		a.omit(err.Error())
		return
	}
	e.HistoryRef, e.History = schema.HistoryRef(a.parts), listOf(rest)
}

// isNeeded reports whether some hook of the event needs the conversation. If that is
// unknown, a short conversation is sent, and for a long one the fabric is asked first.
func (c *Client) isNeeded(ctx context.Context, e *schema.Event) bool {
	k := c.needs.peek(c)
	if k == nil || len(e.History) == 0 || len(e.History) > partLeast {
		var err error
		if k, err = c.needs.get(ctx, c); err != nil {
			return true
		}
	}
	return k == nil || k.rules.History(guard.Call{Agent: e.AgentID, Event: e.HookType, Tool: e.ToolName}) != nil
}

// observe uses what a verdict says about conversations.
func (c *Client) observe(a *ask, v *schema.Verdict) {
	c.needs.observe(c, v)
	c.stored.setFabric(v.Fabric)
	if len(a.parts) == 0 {
		return
	}
	for i := range v.ExecutedHooks {
		if strings.Contains(v.ExecutedHooks[i].Error, schema.HistoryMissing) {
			c.stored.forget(a.parts)
			return
		}
	}
}

// lines encodes the messages, one per line.
func (a *ask) lines(inline bool) (lines [][]byte, err error) {
	size := 0
	add := func(line jsontext.Value) error {
		if size += len(line) + 1; size > schema.MaxHistory {
			return fmt.Errorf("it has more than %d MiB", schema.MaxHistory>>20)
		}
		lines = append(lines, append(line, '\n'))
		return nil
	}
	if inline {
		return lines, each(a.event.History, add)
	}
	messages := a.history()
	for i := range messages {
		line, err := schema.Marshal(&messages[i])
		if err != nil {
			return nil, fmt.Errorf("its message %d cannot be written as JSON: %w", i, err)
		}
		if err := add(line); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// each calls do with a copy of each message of a list.
func each(list jsontext.Value, do func(jsontext.Value) error) error {
	dec := jsontext.NewDecoder(bytes.NewReader(list), jsontext.AllowInvalidUTF8(true))
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		switch {
		case err != nil:
			return fmt.Errorf("it is not a list of messages: %w", err)
		case v.Kind() != '{':
			return errors.New("it is a list, but not of messages")
		}
		line := v.Clone()
		if err := line.Compact(jsontext.AllowInvalidUTF8(true)); err != nil {
			return fmt.Errorf("it has a message that cannot be read: %w", err)
		}
		if err := do(bytes.ToValidUTF8(line, []byte("\uFFFD"))); err != nil {
			return err
		}
	}
	return nil
}

// listOf joins messages to a list.
func listOf(lines [][]byte) jsontext.Value {
	list := append(bytes.Join(lines, nil), ']')
	for i, b := range list {
		if b == '\n' {
			list[i] = ','
		}
	}
	if len(list) > 1 {
		list = append(list[:len(list)-2], ']')
	}
	return append(jsontext.Value{'['}, list...)
}
