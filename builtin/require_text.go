package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// requireTextOptions are the options of "require_text".
type requireTextOptions struct {
	// Text are texts that the message must contain, each of them exactly.
	Text []string `json:"text"`
	// Pattern is a regular expression that must match some part of the message; empty: no
	// pattern.
	Pattern string `json:"pattern"`
	// Guidance is the message to the model if the text is missing; empty: a sentence with
	// what is missing.
	Guidance string `json:"guidance"`
}

// requireText is the hook "require_text".
type requireText struct {
	text     []string
	pattern  *regexp.Regexp // nil: no pattern
	guidance string
}

// newRequireText makes the hook "require_text": it sends the model back to work, with
// guidance, until its message contains the required text. Messages with tool calls are
// skipped, because they are not answers yet.
func newRequireText(h schema.Hook) (workers.Handler, error) {
	o, err := options[requireTextOptions](h)
	if err == nil {
		err = errors.Join(textOption(h, "guidance", o.Guidance), textOption(h, "text", strings.Join(o.Text, "")), textOption(h, "pattern", o.Pattern))
	}
	switch {
	case err != nil:
		return nil, err
	case !h.Event.Permits(schema.Retry):
		return nil, fmt.Errorf("%q asks the model to try again, which is not possible at %s; put it under AfterLLMCall or BeforeFinalResponse", h.Handler, h.Event)
	case len(o.Text) == 0 && o.Pattern == "":
		return nil, fmt.Errorf("%q has neither \"text\" nor \"pattern\"; write the required text into one of these options", h.Handler)
	case slices.Contains(o.Text, ""):
		return nil, fmt.Errorf("the option \"text\" of %q contains an empty string, which every message contains; remove it", h.Handler)
	}
	r := &requireText{text: o.Text, guidance: o.Guidance}
	if o.Pattern != "" {
		if r.pattern, err = regexp.Compile(o.Pattern); err != nil {
			return nil, fmt.Errorf("the option \"pattern\" of %q is not a regular expression: %w", h.Handler, err)
		}
	}
	return r, nil
}

// Handle checks the event's message. A message that is missing or cannot be read is an
// error, because it may lack the text.
func (r *requireText) Handle(_ context.Context, e *schema.Event) (schema.Result, error) {
	m, err := schema.ReadMessage(e.Message)
	switch {
	case err != nil:
		return schema.Result{}, err
	case len(m.ToolCalls) > 0:
		return schema.Result{}, nil
	case m.Content == "" && len(m.Native) > 0:
		return schema.Result{}, errors.New("the hook cannot read the form of this message; send its text as content")
	}
	lacks := r.lacks(m.Content)
	if lacks == "" {
		return schema.Result{}, nil
	}
	guidance := r.guidance
	guidance = cmp.Or(guidance, "The answer must contain "+lacks+". Write the complete answer again, with it.")
	return schema.Retried("the answer lacks "+lacks, schema.Append(schema.RoleSystem, guidance)), nil
}

// lacks describes what is missing in text; empty: nothing is.
func (r *requireText) lacks(text string) string {
	var all []string
	for _, s := range r.text {
		if !strings.Contains(text, s) {
			all = append(all, fmt.Sprintf("%q", s))
		}
	}
	if r.pattern != nil && !r.pattern.MatchString(text) {
		all = append(all, fmt.Sprintf("something of the form %q", r.pattern))
	}
	return strings.Join(all, " and ")
}
