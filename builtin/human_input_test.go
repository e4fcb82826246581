package builtin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

func TestHumanInputIsOneBlockPerRun(t *testing.T) {
	h := stage[delivery](t, schema.HumanInput, nil)
	due := []*schema.Item{
		{Sequence: 2, Source: "human", Content: "use Go\n"},
		{Sequence: 3, Source: "reminder", Content: "not mine"},
		{Sequence: 4, Source: "human", Strategy: schema.ToolResult, Content: "and tests"},
		{Sequence: 7, Source: "human", Strategy: schema.UserMessage, Content: "stop at noon"},
		{Sequence: 9, Source: "human", Content: " "},
	}
	var p schema.Peers
	took := h.Choose(&schema.Receiver{}, &p, due)
	got := h.Render(&schema.Receiver{}, took)
	want := schema.Handout{Injections: []schema.Injection{
		{Content: "[Human Input]: use Go\n[Human Input]: and tests", Strategy: schema.ToolResult, Source: "human", Sequence: 4, Sequences: []uint64{2, 4}},
		{Content: "[Human Input]: stop at noon", Strategy: schema.UserMessage, Source: "human", Sequence: 7},
		{Content: "[Human Input]: (this message has no text)", Strategy: schema.ToolResult, Source: "human", Sequence: 9},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(schema.Peers{}, p); diff != "" {
		t.Errorf("it changed the state of peers:\n%s", diff)
	}
}
