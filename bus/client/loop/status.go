package loop

import (
	"errors"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A Status is what a hook's functions see of the moment and of the agent. It is
// good until the hook's time is up: what a function that goes on after that wants to
// change is refused.
type Status struct {
	// LoopStatus is the moment, in the words that remote conditions have for it. Hooks
	// see the values as the hooks before them left them.
	schema.LoopStatus

	moment *moment
	life   *life
}

// errOver is what a function hears that goes on when its hook's time is up.
var errOver = errors.New("the hook is over; its status changes nothing any more")

// life says whether a hook still may change something.
type life struct {
	mu   sync.Mutex // guards over, and is held while something changes
	over bool
}

func (l *life) end() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
}

// change applies an effect while the hook lives.
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

// Append adds a message at the end of the conversation; an empty role is the
// system's. While tools run it comes after the results of the turn.
func (s *Status) Append(role, content string) error {
	return s.change(&schema.Effect{AppendMessage: &schema.AppendMessage{Role: role, Content: content}})
}

// SetFlag sets a flag of the agent's; nil takes it away.
func (s *Status) SetFlag(name string, value any) error {
	e, err := flag(name, value)
	if err != nil {
		return err
	}
	return s.change(e)
}

// Drop takes messages out of the conversation. A turn whose tools still run stays.
func (s *Status) Drop(d schema.DropMessages) error {
	return s.change(&schema.Effect{DropMessages: &d})
}

// History is a copy of the conversation as it is now. At AfterLLMCall the model's
// message is not yet in it, at BeforeFinalResponse it is; while tools run, the turn's
// results are not.
func (s *Status) History() []schema.Message { return s.moment.history() }

// Flags are a copy of the agent's flags.
func (s *Status) Flags() map[string]jsontext.Value { return s.moment.run.loop.talk.flagged() }

// Prompt is what the user asked with this query.
func (s *Status) Prompt() string { return s.moment.run.prompt }

// Response is what the query ends with, at QueryEnd; elsewhere it is the zero Response.
func (s *Status) Response() Response {
	r, _ := s.moment.seen().(Response)
	return r.clone()
}
