package builtin

import (
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// injectTextOptions are the options of "inject_text".
type injectTextOptions struct {
	// Text is the text for the agent. It must not be empty.
	Text string `json:"text"`
	// Strategy is tool_result or user_message; empty: tool_result.
	Strategy schema.Strategy `json:"strategy"`
}

// newInjectText makes the hook "inject_text": it injects the same text at every event.
func newInjectText(h schema.Hook) (workers.Handler, error) {
	o, err := options[injectTextOptions](h)
	if err == nil {
		err = textOption(h, "text", o.Text)
	}
	switch {
	case err != nil:
		return nil, err
	case o.Text == "":
		return nil, fmt.Errorf("%q has no text; write the text for the agent into its option \"text\"", h.Handler)
	case o.Strategy == "":
		o.Strategy = schema.ToolResult
	case !o.Strategy.Known():
		return nil, fmt.Errorf("the option \"strategy\" of %q is %q; write tool_result or user_message", h.Handler, o.Strategy)
	}
	return workers.HandlerFunc(func(context.Context, *schema.Event) (schema.Result, error) {
		return schema.Injected(o.Text, o.Strategy), nil
	}), nil
}
