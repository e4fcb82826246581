package render

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// said is what a verdict says, in no API's shape.
type said struct {
	// result is the tool's; nil: there is none here.
	result *result
	// notes stand with the result, texts in messages of their own.
	notes, texts []string
}

// result is what a model reads as the outcome of its call.
type result struct {
	id, tool string
	// output is what the tool returned; text stands for it where there is none.
	output jsontext.Value
	text   string
	failed bool
}

// words is the result as a model reads it.
func (r *result) words() string {
	if len(r.output) == 0 {
		return r.text
	}
	var s string
	if r.output.Kind() == '"' && schema.Unmarshal(r.output, &s) == nil {
		return s
	}
	return string(r.output)
}

// say reads a verdict.
func say(e *schema.Event, v *schema.Verdict) (said, error) {
	var s said
	switch e.HookType {
	case schema.PreToolUse:
		s.before(e, v)
	case schema.PostToolUse, schema.ToolError:
		s.after(e, v)
	}
	if v.Decision == schema.Retry {
		s.message(v.Reason)
	}
	for i, in := range v.Injections {
		if in.Content == "" && in.Object != nil {
			return s, fmt.Errorf("injection %d of the verdict lies in the fabric's store and was not fetched; ask through a client that fetches it", i+1)
		}
		if in.Strategy == schema.UserMessage || s.result == nil {
			s.message(in.Content)
		} else {
			s.note(in.Content)
		}
	}
	if r := v.Restart; r != nil {
		s.message(first(r.Content, r.Reason))
	}
	return s, nil
}

// before is about a call that has not run. It has a result only if it must not run.
func (s *said) before(e *schema.Event, v *schema.Verdict) {
	refuse := func(how, why string) {
		s.result = &result{id: e.ToolUseID, tool: e.ToolName, text: how + first(why, "no reason was given"), failed: true}
	}
	switch {
	case v.Decision == schema.Stop:
		s.result = &result{id: e.ToolUseID, tool: e.ToolName, output: v.Value, text: v.Reason}
	case v.Decision == schema.Deny:
		refuse("The call was denied and did not run: ", v.Reason)
	case v.Decision == schema.Fail:
		refuse("The call failed and did not run: ", v.Reason)
	case v.Terminate != nil:
		refuse("The call did not run, since the run ends: ", v.Terminate.Reason)
	case v.Decision == schema.Ask:
		refuse("The call did not run, since a person must approve it first: ", v.Reason)
	}
}

// after is about a call that ran.
func (s *said) after(e *schema.Event, v *schema.Verdict) {
	s.result = &result{id: e.ToolUseID, tool: e.ToolName, output: e.ToolOutput}
	if e.HookType == schema.ToolError {
		s.result.failed = true
		if e.Error != "" {
			s.result.output, s.result.text = nil, e.Error
		}
	}
	if rewrite := v.Rewritten(e.HookType); len(rewrite) > 0 {
		s.result.output = rewrite
	}
	if len(v.Value) > 0 { // of a stop: it is the whole result
		s.result.text, s.result.failed = "", false
	}
	switch v.Decision {
	case schema.Deny:
		s.note("Feedback on this result: " + first(v.Reason, "a hook objects to it, without a reason"))
	case schema.Fail:
		s.result.failed = true
		s.note("This result counts as failed: " + first(v.Reason, "a hook says so, without a reason"))
	}
}

// note and message drop what is blank: it says nothing, and APIs refuse it.
func (s *said) note(text string) {
	if strings.TrimSpace(text) != "" {
		s.notes = append(s.notes, text)
	}
}

func (s *said) message(text string) {
	if strings.TrimSpace(text) != "" {
		s.texts = append(s.texts, text)
	}
}

// identified says that an API cannot tell whose result it is.
func (r *result) identified() error {
	if r.id == "" {
		return fmt.Errorf("the event about the tool %q has no tool_use_id, which the result's message must name; send the id of the model's call", r.tool)
	}
	return nil
}

// named says the same of an API that goes by the tool's name.
func (r *result) named() error {
	if r.tool == "" {
		return errors.New("the event has no tool_name, which the result's message must name; send the name of the function that the model called")
	}
	return nil
}

func first(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return t
		}
	}
	return ""
}
