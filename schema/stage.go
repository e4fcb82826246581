package schema

import "slices"

// The built-in hooks that are stages of the aggregator. They have a place in the order of
// hooks, but the aggregator runs them itself, never a worker.
const (
	MidStreamInjection     = "mid_stream_injection"
	HumanInput             = "human_input"
	SubagentComplete       = "subagent_complete"
	BackgroundToolComplete = "background_tool_complete"
	RoundTimeoutPost       = "round_timeout_post"
	RoundTimeoutPre        = "round_timeout_pre"
)

// DeliveryStages lists the stages that deliver items, in their usual order.
func DeliveryStages() []string {
	return []string{MidStreamInjection, HumanInput, SubagentComplete, BackgroundToolComplete, RoundTimeoutPost}
}

// Delivers reports whether the hook is a stage that delivers items.
func (h *Hook) Delivers() bool {
	return h.Type == Builtin && slices.Contains(DeliveryStages(), h.Handler)
}

// Gates reports whether the hook is the stage that refuses tools after a round's hard limit.
func (h *Hook) Gates() bool { return h.Type == Builtin && h.Handler == RoundTimeoutPre }

// Stage reports whether the aggregator runs the hook itself.
func (h *Hook) Stage() bool { return h.Delivers() || h.Gates() }

// TakesDelivery reports whether delivery hooks may run at t, because the agent can read a text
// then.
func (t EventType) TakesDelivery() bool {
	switch t {
	case PostToolUse, ToolError, UserPromptSubmit, BeforeLLMCall, BeforeFinalResponse:
		return true
	}
	return false
}
