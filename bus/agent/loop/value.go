package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A Value is a type of value that hooks of some event can replace.
type Value interface {
	schema.Message | schema.ToolCall | schema.ToolOutcome | Response
}

// kind says which of the values it is.
type kind string

// The kinds, as a person writes their types. noValue: the event has no value.
const (
	noValue     kind = ""
	messageKind kind = "schema.Message"
	callKind    kind = "schema.ToolCall"
	outcomeKind kind = "schema.ToolOutcome"
	respondKind kind = "loop.Response"
)

// kindOf is v's kind.
func kindOf(v any) kind {
	switch v.(type) {
	case schema.Message:
		return messageKind
	case schema.ToolCall:
		return callKind
	case schema.ToolOutcome:
		return outcomeKind
	case Response:
		return respondKind
	}
	return noValue
}

// valueAt is the kind of value that a hook of event t gives with decision d.
func valueAt(t schema.EventType, d schema.Decision) kind {
	if d == schema.Stop {
		switch t.StopValue() {
		case schema.MessageValue:
			return messageKind
		case schema.ToolResultValue:
			return outcomeKind
		case schema.ResponseValue:
			return respondKind
		}
		return noValue
	}
	switch t.Rewrites() {
	case schema.RewriteInput:
		return callKind
	case schema.RewriteOutput:
		return outcomeKind
	case schema.RewriteMessage:
		return messageKind
	case schema.RewriteResponse:
		return respondKind
	}
	return noValue
}

// A valuer makes a hook's value.
type valuer struct {
	kind kind
	// plain is a value that is always the same; f makes one. One of them is there.
	plain any
	f     func(ctx context.Context, s *Status, current any) (any, error)
	// absent: f calls a function that is nil.
	absent bool
}

// make makes the value from the current one. A stop's has nothing to be made from
// where the moment has no value of its kind; it is zero then.
func (v *valuer) make(ctx context.Context, s *Status, current any) (any, error) {
	if v.f == nil {
		return copied(v.plain), nil
	}
	return v.f(ctx, s, current)
}

// copied is a value with memory of its own.
func copied(v any) any {
	switch v := v.(type) {
	case schema.Message:
		return cloneMessage(v)
	case schema.ToolCall:
		v.Input = v.Input.Clone()
		return v
	case schema.ToolOutcome:
		return cloneOutcome(v)
	case Response:
		return v.clone()
	}
	return v
}

// written is a value as JSON, as the fabric's hooks would write it, or why it is none
// that can stand here.
func written(current, v any) (jsontext.Value, error) {
	switch v := v.(type) {
	case schema.Message:
		return encode(v)
	case schema.ToolCall:
		if c, ok := current.(schema.ToolCall); ok && (v.Name != c.Name || v.ID != c.ID) {
			return nil, errors.New("the value is another call; a hook replaces the input of a call, not its name or its id")
		}
		if v.Input.Kind() != '{' || !v.Input.IsValid(jsontext.AllowInvalidUTF8(true)) {
			return nil, errors.New("the value's input is not a JSON object; write the tool's whole input, {} for none")
		}
		return v.Input, nil
	case schema.ToolOutcome:
		if len(v.Output) > 0 {
			return encode(v.Output)
		}
		return encode(v.Error)
	case Response:
		return encode(v)
	}
	return nil, fmt.Errorf("a value of type %T belongs to no event", v)
}
