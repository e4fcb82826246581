package schema

import "slices"

// The built-in hooks that are stages of the aggregator: they have their place
// in the order of hooks, but no worker ever runs them.
const (
	MidStreamInjection     = "mid_stream_injection"
	HumanInput             = "human_input"
	SubagentComplete       = "subagent_complete"
	BackgroundToolComplete = "background_tool_complete"
	RoundTimeoutPost       = "round_timeout_post"
	RoundTimeoutPre        = "round_timeout_pre"
)

// DeliveryStages are those that hand items over, in their usual order.
func DeliveryStages() []string {
	return []string{MidStreamInjection, HumanInput, SubagentComplete, BackgroundToolComplete, RoundTimeoutPost}
}

// Delivers reports whether the hook hands items over. It says nothing else.
func (h *Hook) Delivers() bool {
	return h.Type == Builtin && slices.Contains(DeliveryStages(), h.Handler)
}

// Gates reports whether the hook is the one that refuses tools after a round's
// hard limit.
func (h *Hook) Gates() bool { return h.Type == Builtin && h.Handler == RoundTimeoutPre }

// Stage reports whether the hook is a stage of the aggregator.
func (h *Hook) Stage() bool { return h.Delivers() || h.Gates() }

// TakesDelivery reports whether delivery hooks may stand at event t: an agent
// can be told something then.
func (t EventType) TakesDelivery() bool {
	switch t {
	case PostToolUse, ToolError, UserPromptSubmit, BeforeLLMCall, BeforeFinalResponse:
		return true
	}
	return false
}
