package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// appendContextOptions are the options of "append_context".
type appendContextOptions struct {
	// Text is the text for the model; empty: only the time.
	Text string `json:"text"`
	// Time adds the current time, in UTC.
	Time bool `json:"time"`
	// Role is the role of the message, system or user; empty: system.
	Role string `json:"role"`
}

// newAppendContext makes the hook "append_context": it appends one message to the
// conversation before each model call. The message of the call before is dropped,
// recognised by its first line, so that there is only one.
func newAppendContext(h schema.Hook) (workers.Handler, error) {
	o, err := options[appendContextOptions](h)
	if err == nil {
		err = textOption(h, "text", o.Text)
	}
	switch {
	case err != nil:
		return nil, err
	case h.Event != schema.BeforeLLMCall:
		return nil, fmt.Errorf("%q adds text to a request of a model; put it under BeforeLLMCall, not %s", h.Handler, h.Event)
	case o.Text == "" && !o.Time:
		return nil, fmt.Errorf("%q has no text to add; write its option \"text\", or \"time\": true", h.Handler)
	case o.Role == "":
		o.Role = schema.RoleSystem
	case o.Role != schema.RoleSystem && o.Role != schema.RoleUser:
		return nil, fmt.Errorf("the option \"role\" of %q is %q; write system or user", h.Handler, o.Role)
	}
	mark := fmt.Sprintf("[context: %s]", h.Name)
	drop := schema.Effect{DropMessages: &schema.DropMessages{Role: o.Role, Containing: mark}}
	return workers.HandlerFunc(func(context.Context, *schema.Event) (schema.Result, error) {
		lines := []string{mark}
		if o.Time {
			lines = append(lines, "The time is "+time.Now().UTC().Format(time.RFC3339)+".")
		}
		if o.Text != "" {
			lines = append(lines, o.Text)
		}
		return schema.Result{}.With(drop, schema.Append(o.Role, strings.Join(lines, "\n"))), nil
	}), nil
}
