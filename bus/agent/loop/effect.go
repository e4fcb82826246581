package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

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
