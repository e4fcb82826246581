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

// kind is the type of a value.
type kind string

// The kinds, as they appear in errors. noValue means that the event has no value.
const (
	noValue     kind = ""
	messageKind kind = "schema.Message"
	callKind    kind = "schema.ToolCall"
	outcomeKind kind = "schema.ToolOutcome"
	respondKind kind = "loop.Response"
)

// kindOf returns v's kind.
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

// valueAt returns the kind of value that a hook of event t gives with decision d.
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
	// plain is a constant value, and f makes one. Exactly one of them is set.
	plain any
	f     func(ctx context.Context, s *Status, current any) (any, error)
	// absent means that the user's function is nil.
	absent bool
}

// make makes the value from the current one. For a stop, the current value is zero if the
// event has no value of that kind.
func (v *valuer) make(ctx context.Context, s *Status, current any) (any, error) {
	if v.f == nil {
		return copied(v.plain), nil
	}
	return v.f(ctx, s, current)
}

// copied returns a deep copy of a value.
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

// written encodes a value as the fabric's hooks would, or returns why it is not valid for
// the event.
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
