package builtin

import (
	"context"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// newAllow makes the hook "allow": it allows tool calls, and has no opinion at events
// without an allow. It has no options.
func newAllow(h schema.Hook) (workers.Handler, error) {
	if _, err := options[struct{}](h); err != nil {
		return nil, err
	}
	return workers.HandlerFunc(allow), nil
}

func allow(_ context.Context, e *schema.Event) (schema.Result, error) {
	if e.HookType.Permits(schema.Allow) {
		return schema.Allowed(), nil
	}
	return schema.Result{}, nil
}
