package builtin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// stages returns the constructors of the hooks that run in the aggregator, by name.
func stages() map[string]func(schema.Hook) (any, error) {
	return map[string]func(schema.Hook) (any, error){
		schema.MidStreamInjection:     newMidStreamInjection,
		schema.HumanInput:             newHumanInput,
		schema.SubagentComplete:       newSubagentComplete,
		schema.BackgroundToolComplete: newBackgroundToolComplete,
		schema.RoundTimeoutPost:       newRoundTimeoutPost,
		schema.RoundTimeoutPre:        newRoundTimeoutPre,
	}
}

// Stage makes the stage of a hook for which [schema.Hook.Stage] is true: a delivery hook
// or the gate. It returns an error if the options are invalid.
func Stage(h *schema.Hook) (any, error) {
	stage, ok := stages()[h.Handler]
	if !ok {
		return nil, fmt.Errorf("%q is not a stage of the aggregator; write one of %s", h.Handler, strings.Join(slices.Sorted(maps.Keys(stages())), ", "))
	}
	return stage(*h)
}

// newStage makes the handler of a stage in a worker's catalog: a worker checks its name
// and options, but cannot run it.
func newStage(h schema.Hook) (workers.Handler, error) {
	if _, err := Stage(&h); err != nil {
		return nil, err
	}
	return workers.HandlerFunc(func(context.Context, *schema.Event) (schema.Result, error) {
		return schema.Result{}, fmt.Errorf("%q is a stage of the aggregator; a worker cannot run it", h.Handler)
	}), nil
}

// chosen returns the items that want accepts, in their order.
func chosen(due []*schema.Item, want func(*schema.Item) bool) (out []*schema.Item) {
	for _, it := range due {
		if want(it) {
			out = append(out, it)
		}
	}
	return out
}
