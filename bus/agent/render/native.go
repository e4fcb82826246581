package render

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A block is a part of a model's message in its API's form.
type block struct {
	raw jsontext.Value
	// At most one of call and text is set. A block without both, such as a thought, has
	// meaning only for the API.
	call *schema.ToolCall
	text *string
	// odd means that the API would not accept the call as it is.
	odd bool
}

// An answer is a model's message in its API's form.
type answer struct {
	blocks []block
	// native is the part of the answer that is kept and sent back.
	native jsontext.Value
}

// text returns the text of the model. Texts separated by calls or thoughts become
// paragraphs.
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

// tongue writes blocks for an API whose messages have blocks.
type tongue struct {
	text func(text string) any
	call func(c *schema.ToolCall, first bool) any
}

// blocks returns a step of the model or a user with the native parts of a. Changed parts
// are written again in their place.
func (s *step) blocks(a *answer, t tongue) []any {
	want := s.text
	if want == "" && len(s.calls) == 0 {
		want = a.text() // the text was not compared
	}
	if s.role == schema.RoleAssistant && blank(want) && len(s.calls) == 0 {
		return nil // APIs refuse thoughts without other content
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

// A builder assembles a message.
type builder struct {
	*step
	tongue
	same   bool // the text is as the API sent it
	calls  bool // the calls are as the API sent them
	called bool // changed calls are written
	place  int  // where a changed text belongs; below 0: not known yet
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

// here records where a changed text belongs: in place of the first text, or before the
// calls.
func (b *builder) here() {
	if b.place < 0 {
		b.place = len(b.all)
	}
}

// call writes the calls. Unchanged ones keep the API's form.
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

// sameCalls reports whether calls are as the API sent them, and it accepts them back.
func (a *answer) sameCalls(calls []schema.ToolCall) bool {
	odd := slices.ContainsFunc(a.blocks, func(b block) bool { return b.odd })
	return !odd && slices.EqualFunc(calls, a.calls(), func(a, b schema.ToolCall) bool { return sameCall(&a, &b) })
}

// sameCall reports whether two calls are equal.
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

// argsOf returns a call's input as an object. Other input of a model is wrapped in one.
func argsOf(c *schema.ToolCall) jsontext.Value {
	switch {
	case len(c.Input) == 0:
		return jsontext.Value(`{}`)
	case c.Input.Kind() == '{':
		return c.Input
	}
	return jsontext.Value(`{"unreadable":` + string(c.Input) + `}`)
}

// objectOf returns the members of an object; nil: v is not an object.
func objectOf(v jsontext.Value) map[string]jsontext.Value {
	var members map[string]jsontext.Value
	if v.Kind() != '{' || schema.Unmarshal(v, &members) != nil {
		return nil
	}
	return members
}

// listOf returns the values of a list; nil: v is not a list.
func listOf(v jsontext.Value) []jsontext.Value {
	var all []jsontext.Value
	if v.Kind() != '[' || schema.Unmarshal(v, &all) != nil {
		return nil
	}
	return all
}

// textOf returns a string; nil: v is not a string.
func textOf(v jsontext.Value) *string {
	var s string
	if v.Kind() != '"' || schema.Unmarshal(v, &s) != nil {
		return nil
	}
	return &s
}

// wordOf returns a string; empty: v is not a string.
func wordOf(v jsontext.Value) string {
	if s := textOf(v); s != nil {
		return *s
	}
	return ""
}
