package render

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// What an API answers instead of a message.
var (
	// ErrRefused: the model, or who watches over it, refused to say anything. A
	// refusal in words is a message.
	ErrRefused = errors.New("the model refused to answer")
	// ErrCut: the answer ended at its bound before anything was said.
	ErrCut = errors.New("the answer was cut off at its bound before the model said anything; allow it more tokens")
)

// Read is an API's whole answer as a message of the model. What has no place in a
// message, such as thoughts, signatures and why the answer ended, is in Native,
// and [Conversation] gives it back. What was said of an answer that was cut off is a
// message; its last call is a faulty one: see [CallError].
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

// CallError says what is wrong with a call that [Read] could not understand, or that
// was cut off; nil: it can be made. Such a call has a JSON string as its input, with what the
// model wrote. Whoever makes the calls answers it with the error instead.
func CallError(c *schema.ToolCall) error {
	if len(c.Input) == 0 || c.Input.Kind() == '{' {
		return nil
	}
	raw := string(c.Input)
	if s := textOf(c.Input); s != nil {
		raw = *s
	}
	return fmt.Errorf("the call of %.100q did not run: its input is no JSON object, or was cut off: %.300q; write one whole JSON object", c.Name, raw)
}

// apiError is the error that an API answered with; nil: it did not.
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

// ErrorText is what an API says in an answer that is an error; of one that says nothing
// the API's way, it is the answer itself.
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

// inputOf is what a model wants to call a tool with. Whatever is no object is a
// string with what stands there.
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

// ended says what an answer is of which nothing can be used.
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

func unread(err error) error { return fmt.Errorf("the API's answer can not be read: %w", err) }

func misshapen(want string, v jsontext.Value) error {
	return fmt.Errorf("the API's answer is not %s: %.300s", want, string(v))
}

// foreign reports whether of what a user says nothing is left, since it is in another
// API's words.
func (s *step) foreign(native *answer) bool {
	return s.text == "" && len(s.native) > 0 && len(native.blocks) == 0
}

func (s *step) errForeign() error {
	return fmt.Errorf("message %d has no content, and what it has natively is not of this API; write its text as the content", s.at)
}
