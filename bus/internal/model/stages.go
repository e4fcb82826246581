package model

import (
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// Stages lists the hooks of an event that the aggregator itself is, in the order
// in which they count: those that hand items over, and those that refuse tools.
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

// isStage: no worker ever runs these.
func isStage(h schema.Hook) bool {
	switch h.Handler {
	case "mid_stream_injection", "human_input", "subagent_complete", "background_tool_complete", "round_timeout_post", "round_timeout_pre":
		return h.Type == schema.Builtin
	}
	return false
}

// delivers: an agent can be told something at these moments.
func delivers(t schema.EventType) bool {
	switch t {
	case schema.PostToolUse, schema.ToolError, schema.UserPromptSubmit, schema.BeforeLLMCall, schema.BeforeFinalResponse:
		return true
	}
	return false
}

// replaced: a hook of a preset makes way for what somebody wrote for the same
// purpose, for whatever tools.
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
