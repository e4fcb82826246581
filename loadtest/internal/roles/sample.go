package roles

import (
	"errors"
	"fmt"
	"strconv"
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

// allowed runs the given number of hooks that allow, and times each, as a worker does.
func allowed(hooks int) []schema.Outcome {
	outcomes := make([]schema.Outcome, hooks)
	for i := range outcomes {
		start := time.Now()
		outcomes[i] = schema.Outcome{Hook: i, Result: schema.Allowed()}
		outcomes[i].Took = schema.Duration(time.Since(start))
	}
	return outcomes
}

// folded returns the verdict of outcomes as the fabric would send it: the same fields,
// about the same size.
func folded(worker string, outcomes []schema.Outcome) *schema.Verdict {
	v := &schema.Verdict{Decision: schema.Continue, ConfigVersion: 1, Fabric: "0193a1f0-7b3c-7c55-9d0e-5f2a64c1e8b7"}
	for _, o := range outcomes {
		v.Decision = o.Result.Decision
		v.ExecutedHooks = append(v.ExecutedHooks, schema.ExecutedHook{
			Hook: "default-1-" + strconv.Itoa(o.Hook+1), Decision: o.Result.Decision, Outcome: schema.OK,
			Duration: o.Took, Worker: worker,
		})
	}
	return v
}

// errTurnedAway is returned for a verdict by the hooks' failure policies, because the
// fabric was overloaded.
var errTurnedAway = errors.New("the fabric had more to do than it could")

// check returns an error if a verdict is not the allow of the given number of hooks, or,
// without hooks, not an empty decision.
func check(v *schema.Verdict, hooks int) error {
	want := schema.Allow
	if hooks == 0 {
		want = schema.Continue
	}
	for _, h := range v.ExecutedHooks {
		if h.Outcome == schema.Busy {
			return fmt.Errorf("%w: the verdict is %q, errors %q", errTurnedAway, v.Decision, v.HookErrors)
		}
	}
	if v.Decision != want {
		return fmt.Errorf("the verdict is %q where %q was due (reason %q, errors %q)", v.Decision, want, v.Reason, v.HookErrors)
	}
	if len(v.ExecutedHooks) != hooks {
		return fmt.Errorf("%d hooks were asked where %d match", len(v.ExecutedHooks), hooks)
	}
	for _, h := range v.ExecutedHooks {
		if h.Outcome != schema.OK || h.Decision != schema.Allow {
			return fmt.Errorf("the hook %q came to %q and decided %q: %s", h.Hook, h.Outcome, h.Decision, h.Error)
		}
	}
	if len(v.HookErrors) > 0 {
		return fmt.Errorf("the verdict names errors: %q", v.HookErrors)
	}
	return nil
}
