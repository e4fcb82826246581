package roles

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/schema"
)

// EventSize is the size of an encoded event, in bytes. The trailing zeros of its timestamp
// may change it slightly.
const EventSize = 1024

// agent is the agent that all events belong to.
const agent = "load"

// sample makes events of one tool, all of the same size.
type sample struct{ like schema.Event }

// newSample pads the tool's input until an event has [EventSize].
func newSample(tool string) (*sample, error) {
	s := &sample{like: schema.Event{
		HookType:  schema.PreToolUse,
		SessionID: "0d4c3f1e-load",
		AgentID:   agent,
		Runtime:   "generic",
		ToolName:  tool,
		ToolKind:  "shell",
		ToolUseID: "toolu_01load",
		Cwd:       "/srv/project",
	}}
	if err := s.pad(0); err != nil {
		return nil, err
	}
	e, err := s.event()
	if err != nil {
		return nil, err
	}
	body, err := schema.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encoding a sample event: %w", err)
	}
	return s, s.pad(EventSize - len(body))
}

// pad gives the events an input with a comment of the given size.
func (s *sample) pad(padding int) error {
	input, err := schema.Marshal(map[string]any{
		"command": "make test 2>&1 | tail -n 40 # " + strings.Repeat("x", padding),
		"timeout": 120,
	})
	if err != nil {
		return fmt.Errorf("encoding a sample tool input: %w", err)
	}
	s.like.ToolInput = input
	return nil
}

// event returns an event with a new id and the current time.
func (s *sample) event() (*schema.Event, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("making an event's id: %w", err)
	}
	e := s.like
	e.EventID = id.String()
	e.Timestamp = time.Now().UTC().Truncate(time.Microsecond)
	return &e, nil
}
