package hooksyaml

import (
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// fitStage checks a stage. It has a place in the order of hooks, but settings for running
// a handler have no effect.
func (r *reader) fitStage(d *draft) {
	h := &d.hook
	if !h.Stage() {
		return
	}
	if h.Event != "" && !slices.Contains(stageEvents(h), h.Event) {
		r.fault(d.given["handler"].at, fmt.Sprintf("the builtin %s cannot run at %s", h.Handler, h.Event), "write it below "+oneOf(stageEvents(h)))
	}
	for _, m := range []misfit{
		{"fail_closed", h.FailClosed && h.Delivers(), "which refuses nothing", "remove it"},
		{"mode", h.Mode == schema.Shadow, "which has no shadow mode", "remove it"},
		{"when", h.When != "", "which has no conditions", "remove it; a matcher can pick tools"},
		{"pool", h.Pool != schema.DefaultPool, "which runs in no pool", "remove it: the broker itself runs it"},
		{"timeout", h.Timeout != schema.DefaultTimeout, "which waits for no worker", "remove it"},
		{"needs", len(h.Needs) > 0, "which reads no event", "remove it"},
		{"max_concurrent", h.MaxConcurrent > 0, "which runs on no worker", "remove it"},
		{"auto_approve", h.AutoApprove, "which allows nothing", "remove it"},
		{"readonly", !h.Readonly, "which rewrites nothing", "remove it"},
		{"idempotent", !h.Idempotent, "which is always idempotent", "remove it"},
	} {
		if e, ok := d.given[m.key]; ok && m.is && !e.isNull() {
			r.fault(e.at, fmt.Sprintf("%s does not fit the builtin %s, %s", m.key, h.Handler, m.message), m.hint)
		}
	}
}

// stageEvents returns the events at which a stage has an effect.
func stageEvents(h *schema.Hook) []schema.EventType {
	if h.Gates() {
		return []schema.EventType{schema.PreToolUse}
	}
	return slices.DeleteFunc(schema.EventTypes(), func(t schema.EventType) bool { return !t.TakesDelivery() })
}

// oneOf joins events in a sentence.
func oneOf(events []schema.EventType) string {
	if len(events) == 1 {
		return string(events[0])
	}
	var names []string
	for _, t := range events {
		names = append(names, string(t))
	}
	return "one of " + words(names)
}
