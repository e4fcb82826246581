package render

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// rendering is the content of a verdict, independent of any API.
type rendering struct {
	// result is the tool's result; nil: no result.
	result *result
	// notes follow the result in its message; texts are messages of their own.
	notes, texts []string
}

// result is the outcome of a call for the model.
type result struct {
	id, tool string
	// output is the tool's output; without one, text replaces it.
	output jsontext.Value
	text   string
	failed bool
}

// words returns the result as text.
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

// renderVerdict converts a verdict.
func renderVerdict(e *schema.Event, v *schema.Verdict) (rendering, error) {
	var s rendering
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

// before handles a call that has not run. It sets a result only if the call must not run.
func (s *rendering) before(e *schema.Event, v *schema.Verdict) {
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

// after handles a call that ran.
func (s *rendering) after(e *schema.Event, v *schema.Verdict) {
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
	if len(v.Value) > 0 { // a stop's value is the whole result
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

// note and message skip blank texts, which APIs refuse.
func (s *rendering) note(text string) {
	if strings.TrimSpace(text) != "" {
		s.notes = append(s.notes, text)
	}
}

func (s *rendering) message(text string) {
	if strings.TrimSpace(text) != "" {
		s.texts = append(s.texts, text)
	}
}

// identified returns an error if the result has no id of its call.
func (r *result) identified() error {
	if r.id == "" {
		return fmt.Errorf("the event about the tool %q has no tool_use_id, which the result's message must name; send the id of the model's call", r.tool)
	}
	return nil
}

// named returns an error if the result has no tool name, for APIs that identify results
// by it.
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
