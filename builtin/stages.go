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

// stages make the hooks that run in the aggregator, by name.
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

// Stage makes the stage of a hook that [schema.Hook.Stage] says is one: a
// delivery hook or the gate. An error says what is wrong with its options.
func Stage(h *schema.Hook) (any, error) {
	stage, ok := stages()[h.Handler]
	if !ok {
		return nil, fmt.Errorf("%q is not a stage of the aggregator; write one of %s", h.Handler, strings.Join(slices.Sorted(maps.Keys(stages())), ", "))
	}
	return stage(*h)
}

// newStage makes what stands in a worker's catalog for a stage: a worker that
// is asked to load one knows its name and options, but nobody is to call it.
func newStage(h schema.Hook) (workers.Handler, error) {
	if _, err := Stage(&h); err != nil {
		return nil, err
	}
	return workers.HandlerFunc(func(context.Context, *schema.Event) (schema.Result, error) {
		return schema.Result{}, fmt.Errorf("%q is a stage of the aggregator; a worker cannot run it", h.Handler)
	}), nil
}

// chosen are the items that want takes, in their order.
func chosen(due []*schema.Item, want func(*schema.Item) bool) (out []*schema.Item) {
	for _, it := range due {
		if want(it) {
			out = append(out, it)
		}
	}
	return out
}

// from takes the items of one source.
func from(source string) func(*schema.Item) bool {
	return func(it *schema.Item) bool { return it.Source == source }
}
