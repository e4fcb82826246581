package hooksyaml

import (
	"slices"
	"strconv"

	"github.com/hookfabric/hookfabric/schema"
)

// presetNames are the presets. All are enabled by default.
var presetNames = []string{"delivery"}

// HighPriorityTaskReminder is the builtin of the preset `delivery` that workers run.
const HighPriorityTaskReminder = "high_priority_task_reminder"

// AddPresets adds the hooks of cfg's presets before all others. It replaces the preset hooks
// that are in cfg.
//
// It omits a hook if a user wrote a global hook with the same builtin and event. A user's
// settings of a delivery hook at PostToolUse also apply to the preset's hook at ToolError.
// Otherwise a failing tool would deliver what the user holds back. The options also apply at
// BeforeFinalResponse, which is not about a tool. Preset hooks get their derived names last, so
// that they never take a user's name.
func AddPresets(cfg *schema.Config) {
	written := slices.DeleteFunc(slices.Clone(cfg.Hooks), func(h schema.Hook) bool { return h.Preset != "" })
	names := make(map[string]bool, len(written))
	for i := range written {
		names[written[i].Name] = true
	}
	var hooks []schema.Hook
	for _, preset := range cfg.Presets {
		if preset != presetNames[0] {
			continue
		}
		for _, h := range delivery() {
			if replaced(&h, written) {
				continue
			}
			follow(&h, written)
			for n := 2; names[h.Name]; n++ {
				h.Name = h.Handler + "-" + strconv.Itoa(n)
			}
			names[h.Name] = true
			hooks = append(hooks, h)
		}
	}
	cfg.Hooks = append(hooks, written...)
	if cfg.Hooks == nil {
		cfg.Hooks = []schema.Hook{}
	}
}

// replaced reports whether a global hook replaces a preset's hook.
func replaced(h *schema.Hook, written []schema.Hook) bool {
	return slices.ContainsFunc(written, func(w schema.Hook) bool {
		return w.Agent == "" && w.Event == h.Event && w.Type == h.Type && w.Handler == h.Handler
	})
}

// follow copies the settings of the last global hook of the same builtin at PostToolUse
// to a preset's hook at another event.
func follow(h *schema.Hook, written []schema.Hook) {
	if h.Event != schema.ToolError && h.Event != schema.BeforeFinalResponse {
		return
	}
	for i := range written {
		if w := &written[i]; w.Agent == "" && w.Event == schema.PostToolUse && w.Type == h.Type && w.Handler == h.Handler {
			h.Options = w.Options
			if h.Event.HasTool() {
				h.Matcher = w.Matcher
			}
		}
	}
}

// delivery returns the delivery hooks in their usual order, and the two hooks of time
// limits. Those at BeforeFinalResponse ensure that no turn ends with unread items.
func delivery() []schema.Hook {
	var hooks []schema.Hook
	add := func(event schema.EventType, handler, matcher, pool string) {
		hooks = append(hooks, schema.Hook{
			Name: handler, Event: event, Matcher: matcher, Type: schema.Builtin, Handler: handler, Timeout: schema.DefaultTimeout,
			Pool: pool, Readonly: true, Idempotent: true, System: true, Preset: presetNames[0],
		})
	}
	for _, event := range []schema.EventType{schema.PostToolUse, schema.ToolError, schema.BeforeFinalResponse} {
		for i, handler := range schema.DeliveryStages() {
			if i == 1 && event == schema.PostToolUse {
				add(event, HighPriorityTaskReminder, "*update_task_status", schema.DefaultPool)
			}
			add(event, handler, "", "")
		}
	}
	add(schema.PreToolUse, schema.RoundTimeoutPre, "", "")
	return hooks
}
