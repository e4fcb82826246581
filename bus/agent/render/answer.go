package render

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// The errors of an API answer without a message.
var (
	// ErrRefused means that the model or its provider refused to answer. A refusal in words is
	// a message, not this error.
	ErrRefused = errors.New("the model refused to answer")
	// ErrCut means that the answer reached its token limit before the model said anything.
	ErrCut = errors.New("the answer was cut off at its limit before the model said anything; allow it more tokens")
)

// Read returns an API's whole answer as a message of the model. Native keeps what has no place
// in a message, such as thoughts, signatures and the stop reason, and [Conversation] sends it
// back. An answer that was cut off is a message if it has content; its last call may be faulty,
// see [CallError].
func Read(f Format, response jsontext.Value) (schema.Message, error) {
	w, err := conversing(f)
	if err != nil {
		return schema.Message{}, err
	}
	if err := apiError(response); err != nil {
		return schema.Message{}, err
	}
	a, err := w.read(response)
	if err != nil {
		return schema.Message{}, err
	}
	return schema.Message{Role: schema.RoleAssistant, Content: a.text(), ToolCalls: a.calls(), Native: a.native}, nil
}

// CallError returns what is wrong with a call that [Read] could not understand, or that was cut
// off; nil: the call is valid. The input of a faulty call is a JSON string with the model's
// text. Do not make such a call; answer it with the error.
func CallError(c *schema.ToolCall) error {
	if len(c.Input) == 0 || c.Input.Kind() == '{' {
		return nil
	}
	raw := string(c.Input)
	if s := textOf(c.Input); s != nil {
		raw = *s
	}
	return fmt.Errorf("the call of %.100q did not run: its input is not a JSON object, or was cut off: %.300q; write one whole JSON object", c.Name, raw)
}

// apiError returns the API's error; nil: the answer is not an error.
func apiError(response jsontext.Value) error {
	members := objectOf(response)
	if members == nil {
		return misshapen("a JSON object", response)
	}
	why := members["error"]
	if k := why.Kind(); len(why) == 0 || k == 'n' {
		return nil
	}
	return fmt.Errorf("the API answered with an error: %.1000s", ErrorText(response))
}

// ErrorText returns the error message in an API's answer. If the answer does not have the API's
// form, it returns the answer itself.
func ErrorText(response jsontext.Value) string {
	why := objectOf(response)["error"]
	switch why.Kind() {
	case '"':
		return wordOf(why)
	case '{':
		m := objectOf(why)
		if text := first(wordOf(m["message"]), wordOf(m["type"]), wordOf(m["status"])); text != "" {
			return text
		}
	}
	return string(response)
}

// called begins a call.
func called(i int, id, name jsontext.Value) (*schema.ToolCall, error) {
	c := &schema.ToolCall{ID: wordOf(id), Name: wordOf(name)}
	if c.Name == "" {
		return nil, fmt.Errorf("part %d of the model's answer is a call without the name of a tool", i+1)
	}
	return c, nil
}

// inputOf returns the input of a model's call. Input that is not an object becomes a
// string with its text.
func inputOf(v jsontext.Value) jsontext.Value {
	switch v.Kind() {
	case '{':
		return v
	case 'n':
		return jsontext.Value(`{}`)
	case '"':
		return v
	}
	if len(v) == 0 {
		return jsontext.Value(`{}`)
	}
	text, err := schema.Marshal(string(v))
	if err != nil {
		return jsontext.Value(`""`)
	}
	return text
}

// ended returns why an answer has no usable content.
func (a *answer) ended(why string, refused, cut bool) error {
	if a.text() != "" || len(a.calls()) > 0 {
		return nil
	}
	switch {
	case refused:
		return fmt.Errorf("%w: it ended with %.100q", ErrRefused, why)
	case cut:
		return ErrCut
	}
	return nil
}

func unread(err error) error { return fmt.Errorf("the API's answer cannot be read: %w", err) }

func misshapen(want string, v jsontext.Value) error {
	return fmt.Errorf("the API's answer is not %s: %.300s", want, string(v))
}

// foreign reports whether a user's message is empty because all its content is in another
// API's form.
func (s *step) foreign(native *answer) bool {
	return s.text == "" && len(s.native) > 0 && len(native.blocks) == 0
}

func (s *step) errForeign() error {
	return fmt.Errorf("message %d has no content, and what it has natively is not of this API; write its text as the content", s.at)
}
