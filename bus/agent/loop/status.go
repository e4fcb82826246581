package loop

import (
	"errors"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

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
