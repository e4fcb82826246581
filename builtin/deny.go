package builtin

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// denyOptions are the options of "deny".
type denyOptions struct {
	// Reason is for the agent; empty: a sentence that names the hook.
	Reason string `json:"reason"`
}

// newDeny makes the hook "deny": it refuses every event that its matcher matches. The
// decision is deny at events that have it (feedback to the agent after a tool ran), and
// fail at the events of the model and the final response.
func newDeny(h schema.Hook) (workers.Handler, error) {
	o, err := options[denyOptions](h)
	if err == nil {
		err = textOption(h, "reason", o.Reason)
	}
	if err != nil {
		return nil, err
	}
	if refusal(h.Event) == schema.None {
		return nil, fmt.Errorf("%q cannot deny anything at %s; put it under another event", h.Handler, h.Event)
	}
	o.Reason = cmp.Or(o.Reason, fmt.Sprintf("refused by the hook %q", h.Name))
	return workers.HandlerFunc(func(_ context.Context, e *schema.Event) (schema.Result, error) {
		return schema.Result{Decision: refusal(e.HookType), Reason: o.Reason}, nil
	}), nil
}

// refusal returns the decision that refuses t; None: t cannot be refused.
func refusal(t schema.EventType) schema.Decision {
	if t.Permits(schema.Deny) {
		return schema.Deny
	}
	return t.Blocking()
}
