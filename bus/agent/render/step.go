package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A step is one message of a conversation, with the results of its calls.
type step struct {
	// at is the message's number, from 1.
	at   int
	role string
	text string
	// native is the message in the form of any API.
	native jsontext.Value
	calls  []schema.ToolCall
	// results are the results in the order of the calls.
	results []rendering
}

// stepsOf assigns results to their calls. Messages between a call and its result come
// after it.
func stepsOf(messages []schema.Message) ([]step, error) {
	var all, deferred []step
	var open *step // a step with calls that wait for results
	for i := range messages {
		m := &messages[i]
		if err := check(m); err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		switch {
		case m.Role == schema.RoleTool:
			if open == nil || !open.answers(m.Result) {
				return nil, fmt.Errorf("message %d is a result of the call %.100q of %.100q, and the model made no such call, or it has its result; take it out, or put the call before it",
					i+1, m.Result.ID, m.Result.Name)
			}
			if open.unanswered() == nil {
				all, deferred, open = append(append(all, *open), deferred...), nil, nil
			}
		case open == nil && len(m.ToolCalls) == 0:
			all = append(all, *stepOf(i+1, m))
		case m.Role == schema.RoleAssistant && open == nil:
			open = stepOf(i+1, m)
		case m.Role == schema.RoleAssistant:
			return nil, open.missing()
		default:
			deferred = append(deferred, *stepOf(i+1, m))
		}
	}
	if open != nil {
		return nil, open.missing()
	}
	return all, nil
}

func stepOf(at int, m *schema.Message) *step {
	return &step{at: at, role: m.Role, text: m.Content, native: m.Native, calls: slices.Clone(m.ToolCalls), results: make([]rendering, len(m.ToolCalls))}
}

// check returns what is wrong with a single message.
func check(m *schema.Message) error {
	switch m.Role {
	case schema.RoleSystem, schema.RoleUser, schema.RoleAssistant, schema.RoleTool:
	default:
		return fmt.Errorf("the role is %.40q; write system, user, assistant or tool", m.Role)
	}
	if m.Role == schema.RoleTool && m.Result == nil {
		return errors.New("it has the role tool and no tool_result; write what came of the call")
	}
	if m.Role == schema.RoleTool && m.Content != "" {
		return errors.New("it has the role tool and content; write it as the output of its tool_result")
	}
	if m.Role != schema.RoleTool && m.Result != nil {
		return fmt.Errorf("it has a tool_result, and the role %s; write the role tool", m.Role)
	}
	if m.Role != schema.RoleAssistant && len(m.ToolCalls) > 0 {
		return fmt.Errorf("it has tool_calls, and the role %s; only the assistant calls tools", m.Role)
	}
	for i, c := range m.ToolCalls {
		if c.Name == "" {
			return fmt.Errorf("its call %d has no name; write the tool's", i+1)
		}
	}
	return nil
}

// answers assigns a result to its call, if one waits for it. Among equal calls it takes
// the first.
func (s *step) answers(o *schema.ToolOutcome) bool {
	for i, c := range s.calls {
		if s.results[i].result == nil && c.ID == o.ID && (o.ID != "" || o.Name == "" || o.Name == c.Name) {
			s.results[i] = renderOutcome(o, c.Name)
			return true
		}
	}
	return false
}

// renderOutcome converts the outcome of a call.
func renderOutcome(o *schema.ToolOutcome, tool string) rendering {
	s := rendering{result: &result{id: o.ID, tool: tool, output: o.Output, failed: o.Error != ""}}
	switch {
	case len(o.Output) == 0:
		s.result.text = o.Error
	case o.Error != "":
		s.note("This result counts as failed: " + o.Error)
	}
	for _, n := range o.Notes {
		s.note(n)
	}
	return s
}

// unanswered returns a call that waits for its result; nil: none does.
func (s *step) unanswered() *schema.ToolCall {
	for i := range s.calls {
		if s.results[i].result == nil {
			return &s.calls[i]
		}
	}
	return nil
}

func (s *step) missing() error {
	c := s.unanswered()
	return fmt.Errorf("the call %.100q of %.100q in message %d has no result before the model's next message; add a tool message with its result, or with the reason why it did not run",
		c.ID, c.Name, s.at)
}

// identify gives new ids to calls and results for which fit is false.
func identify(steps []step, fit func(id string) bool) {
	for i := range steps {
		s := &steps[i]
		for n := range s.calls {
			if !fit(s.calls[n].ID) {
				s.calls[n].ID = fmt.Sprintf("hookfabric_%d_%d", s.at, n)
			}
			s.results[n].result.id = s.calls[n].ID
		}
	}
}

// unused returns a function that reports whether an id is new.
func unused() func(id string) bool {
	seen := map[string]bool{}
	return func(id string) bool {
		if id == "" || seen[id] {
			return false
		}
		seen[id] = true
		return true
	}
}

// leading separates the system messages at the start.
func leading(steps []step) (system []string, rest []step) {
	for rest = steps; len(rest) > 0 && rest[0].role == schema.RoleSystem; rest = rest[1:] {
		if !blank(rest[0].text) {
			system = append(system, rest[0].text)
		}
	}
	return system, rest
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// Lines of the user, for APIs that require one.
const (
	droppedLine = "(What was said before is left out.)"
	goOnLine    = "Go on."
)

var errNoMessage = errors.New("the conversation has only system messages; append a user message")
