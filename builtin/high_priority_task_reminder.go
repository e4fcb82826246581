package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// reminderOptions are the options of "high_priority_task_reminder".
type reminderOptions struct {
	// Lines are what the agent should write down, one line each; absent: four questions
	// about what to remember.
	Lines []string `json:"lines"`
}

// defaultLines are questions whose answers help with later tasks.
func defaultLines() []string {
	return []string{
		"Which tools and skills helped, which did not? -> memory/long_term/skill_effectiveness.md",
		"Which approach worked or failed, and why? -> memory/long_term/approach_patterns.md",
		"What would have prevented mistakes? -> memory/long_term/lessons_learned.md",
		"What did you learn about what the user likes? -> memory/short_term/user_prefs.md",
	}
}

// newReminder makes the hook "high_priority_task_reminder": when a tool reports that a
// task of high priority is completed, the agent is asked to write down what it learned.
// The hook's matcher selects the tools.
func newReminder(h schema.Hook) (workers.Handler, error) {
	o, err := options[reminderOptions](h)
	switch {
	case err != nil:
		return nil, err
	case h.Event != schema.PostToolUse:
		return nil, fmt.Errorf("%q reads the output of tools, which %s does not have; put it under PostToolUse", h.Handler, h.Event)
	case o.Lines == nil:
		o.Lines = defaultLines()
	case len(o.Lines) == 0 || slices.Contains(o.Lines, ""):
		return nil, fmt.Errorf("the option \"lines\" of %q has no text; write what the agent should note, or leave the option out", h.Handler)
	}
	text := framed("SYSTEM REMINDER", "\nA task of high priority is done. Write down what helps with the next one:\n  - "+strings.Join(o.Lines, "\n  - ")+"\n")
	if err := textOption(h, "lines", text); err != nil {
		return nil, err
	}
	answer := schema.Injected(text, schema.UserMessage)
	return workers.HandlerFunc(func(_ context.Context, e *schema.Event) (schema.Result, error) {
		if importantDone(e.ToolOutput) {
			return answer, nil
		}
		return schema.Result{}, nil
	}), nil
}

// importantDone reports whether a tool returned a task of high priority that is
// completed. The check of the raw text saves decoding most outputs.
func importantDone(output jsontext.Value) bool {
	if s := string(output); !strings.Contains(s, `\u`) && (!strings.Contains(s, "high") || !strings.Contains(s, "completed")) {
		return false
	}
	return anyDocument(output, func(doc map[string]any) bool {
		task, _ := doc["task"].(map[string]any)
		return task["priority"] == "high" && task["status"] == "completed"
	})
}
