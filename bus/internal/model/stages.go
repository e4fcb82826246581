package model

import (
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// Stages lists the hooks of an event that run in the aggregator itself, in the order in which they
// count: those that deliver items, and those that refuse tools.
func Stages(cfg schema.Config, agent string, t schema.EventType, tool string) (deliver, gates []schema.Hook) {
	all := slices.DeleteFunc(concerned(cfg, agent, t, tool), func(h schema.Hook) bool { return !isStage(h) || h.Mode == schema.Shadow })
	for i, h := range all {
		again := slices.ContainsFunc(all[i+1:], func(later schema.Hook) bool { return later.Handler == h.Handler })
		switch {
		case again: // the last one counts
		case h.Handler == "round_timeout_pre":
			if t == schema.PreToolUse {
				gates = append(gates, h)
			}
		case delivers(t):
			deliver = append(deliver, h)
		}
	}
	return deliver, gates
}

// isStage reports whether the aggregator itself runs a hook, and no worker.
func isStage(h schema.Hook) bool {
	switch h.Handler {
	case "mid_stream_injection", "human_input", "subagent_complete", "background_tool_complete", "round_timeout_post", "round_timeout_pre":
		return h.Type == schema.Builtin
	}
	return false
}

// delivers reports whether an agent can receive messages at an event.
func delivers(t schema.EventType) bool {
	switch t {
	case schema.PostToolUse, schema.ToolError, schema.UserPromptSubmit, schema.BeforeLLMCall, schema.BeforeFinalResponse:
		return true
	}
	return false
}

// replaced reports whether a hook of a preset gives way to a configured hook for the same purpose,
// for any tools.
func replaced(cfg schema.Config, agent string, h schema.Hook) bool {
	return h.Preset != "" && slices.ContainsFunc(cfg.Hooks, func(o schema.Hook) bool {
		if o.Preset != "" || o.Event != h.Event || o.Type != h.Type || o.Handler != h.Handler {
			return false
		}
		if o.Agent != "" {
			return isAgent(o.Agent, agent)
		}
		return o.System || !overridden(cfg, agent, o.Event)
	})
}
