package render

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A block is a part of a model's message, as its API has it.
type block struct {
	raw jsontext.Value
	// Of call and text at most one is there: a block without them, such as a
	// thought, is the API's own business.
	call *schema.ToolCall
	text *string
	// odd: the API would not take the call back as it is.
	odd bool
}

// An answer is a model's message, as its API has it.
type answer struct {
	blocks []block
	// native is what is kept of the answer, and given back.
	native jsontext.Value
}

// text is what the model says. What calls or thoughts stand between are
// paragraphs of their own.
func (a *answer) text() string {
	var b strings.Builder
	apart := false
	for _, one := range a.blocks {
		switch {
		case one.text == nil:
			apart = b.Len() > 0
		case *one.text != "":
			if apart {
				b.WriteString("\n\n")
			}
			b.WriteString(*one.text)
			apart = false
		}
	}
	return b.String()
}

func (a *answer) calls() (all []schema.ToolCall) {
	for _, b := range a.blocks {
		if b.call != nil {
			all = append(all, *b.call)
		}
	}
	return all
}

// tongue is how an API that has messages of blocks writes some.
type tongue struct {
	text func(text string) any
	call func(c *schema.ToolCall, first bool) any
}

// blocks are a step of the model's or a user's, with all that a is of it, which may be
// nothing: what has changed since is written anew in its place.
func (s *step) blocks(a *answer, t tongue) []any {
	want := s.text
	if want == "" && len(s.calls) == 0 {
		want = a.text() // it was never looked at
	}
	if s.role == schema.RoleAssistant && blank(want) && len(s.calls) == 0 {
		return nil // APIs refuse thoughts of which nothing came
	}
	b := builder{step: s, tongue: t, same: want == a.text(), calls: a.sameCalls(s.calls), place: -1}
	for i := range a.blocks {
		b.block(a, &a.blocks[i])
	}
	if b.place < 0 {
		b.place = len(b.all)
	}
	if !b.called {
		b.call(a)
	}
	if !b.same && !blank(want) {
		b.all = slices.Insert(b.all, b.place, t.text(want))
	}
	return b.all
}

// A builder puts a message together.
type builder struct {
	*step
	tongue
	same   bool // the text is as the API gave it
	calls  bool // the calls are
	called bool // they are written, if they are not the same
	place  int  // where a changed text belongs; below 0: nowhere yet
	all    []any
}

func (b *builder) block(a *answer, one *block) {
	switch {
	case one.text != nil && b.same:
		if !blank(*one.text) {
			b.all = append(b.all, one.raw)
		}
	case one.text != nil:
		b.here()
	case one.call == nil:
		b.all = append(b.all, one.raw)
	case b.calls:
		b.here()
		b.called, b.all = true, append(b.all, one.raw)
	case !b.called:
		b.here()
		b.call(a)
	}
}

// here is where a changed text belongs: where the first one was, or before the calls.
func (b *builder) here() {
	if b.place < 0 {
		b.place = len(b.all)
	}
}

// call writes the calls, those that the API gave as it gave them.
func (b *builder) call(a *answer) {
	b.called = true
	for i := range b.step.calls {
		c := &b.step.calls[i]
		n := slices.IndexFunc(a.blocks, func(one block) bool { return one.call != nil && !one.odd && sameCall(c, one.call) })
		if n >= 0 {
			b.all = append(b.all, a.blocks[n].raw)
		} else {
			b.all = append(b.all, b.tongue.call(c, i == 0))
		}
	}
}

// sameCalls reports whether calls are those that the API gave, and it takes them back.
func (a *answer) sameCalls(calls []schema.ToolCall) bool {
	odd := slices.ContainsFunc(a.blocks, func(b block) bool { return b.odd })
	return !odd && slices.EqualFunc(calls, a.calls(), func(a, b schema.ToolCall) bool { return sameCall(&a, &b) })
}

// sameCall reports whether two calls are one.
func sameCall(a, b *schema.ToolCall) bool {
	return a.ID == b.ID && a.Name == b.Name && sameJSON(a.Input, b.Input)
}

func sameJSON(a, b jsontext.Value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	a, b = a.Clone(), b.Clone()
	return a.Canonicalize() == nil && b.Canonicalize() == nil && bytes.Equal(a, b)
}

// argsOf is a call's input as an object. What is none, since the model wrote it so, is put
// into one.
func argsOf(c *schema.ToolCall) jsontext.Value {
	switch {
	case len(c.Input) == 0:
		return jsontext.Value(`{}`)
	case c.Input.Kind() == '{':
		return c.Input
	}
	return jsontext.Value(`{"unreadable":` + string(c.Input) + `}`)
}

// objectOf are the members of an object; nil: it is none.
func objectOf(v jsontext.Value) map[string]jsontext.Value {
	var members map[string]jsontext.Value
	if v.Kind() != '{' || schema.Unmarshal(v, &members) != nil {
		return nil
	}
	return members
}

// listOf are the values of a list; nil: it is none.
func listOf(v jsontext.Value) []jsontext.Value {
	var all []jsontext.Value
	if v.Kind() != '[' || schema.Unmarshal(v, &all) != nil {
		return nil
	}
	return all
}

// textOf is a string; nil: it is none.
func textOf(v jsontext.Value) *string {
	var s string
	if v.Kind() != '"' || schema.Unmarshal(v, &s) != nil {
		return nil
	}
	return &s
}

// wordOf is a string; empty: it is none.
func wordOf(v jsontext.Value) string {
	if s := textOf(v); s != nil {
		return *s
	}
	return ""
}
