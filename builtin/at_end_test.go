package builtin

import (
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// sample returns an item that the named delivery hook takes.
func sample(name string) *schema.Item {
	it := &schema.Item{Sequence: 1, Content: "x", Strategy: schema.ToolResult}
	switch name {
	case schema.MidStreamInjection:
		it.Source, it.Answer = schema.SourcePeer, &schema.PeerAnswer{Name: "agent2", Label: "agent2.1"}
	case schema.HumanInput:
		it.Source = schema.SourceHuman
	case schema.SubagentComplete:
		it.Source = schema.SourceSubagent
	case schema.BackgroundToolComplete:
		it.Source = schema.SourceBackground
	case schema.RoundTimeoutPost:
		it.Source = schema.SourceTimeout
	}
	return it
}

// The option at_end decides what happens to items at the end of a turn, and only there.
func TestEveryDeliveryHookFollowsItsOptionAtEnd(t *testing.T) {
	for _, name := range schema.DeliveryStages() {
		for option, want := range map[string]struct{ chosen, retry bool }{
			"": {true, true}, endRetry: {true, true}, endTell: {true, false}, endWait: {false, false},
		} {
			var o map[string]any
			if option != "" {
				o = map[string]any{"at_end": option}
			}
			d := stage[delivery](t, name, o)
			for _, event := range []schema.EventType{schema.BeforeFinalResponse, schema.PostToolUse, schema.UserPromptSubmit} {
				r := &schema.Receiver{Routing: schema.Routing{Event: event}}
				took := d.Choose(r, &schema.Peers{}, []*schema.Item{sample(name)})
				if atEnd := event == schema.BeforeFinalResponse; (len(took) > 0) != (want.chosen || !atEnd) {
					t.Errorf("%s, at_end %q, at %s: it takes %d items", name, option, event, len(took))
				} else if out := d.Render(r, took); len(took) > 0 && out.Retry != (want.retry && atEnd) {
					t.Errorf("%s, at_end %q, at %s: %+v", name, option, event, out)
				}
			}
		}
	}
}

// Answers that are deferred during a turn are deferred at its end, too.
func TestTheEndOfATurnDoesNotDeliverDeferredAnswers(t *testing.T) {
	r := &schema.Receiver{Routing: schema.Routing{Event: schema.BeforeFinalResponse}, Round: &schema.Round{Start: 7}}
	due := []*schema.Item{sample(schema.MidStreamInjection)}
	deferred := stage[delivery](t, schema.MidStreamInjection, map[string]any{"defer_peer_updates_until_restart": true})
	if took := deferred.Choose(r, &schema.Peers{}, due); len(took) > 0 {
		t.Error("a deferred answer is delivered")
	}
	once := stage[delivery](t, schema.MidStreamInjection, map[string]any{"max_updates_per_round": 1})
	p := schema.Peers{}
	if took := once.Choose(r, &p, due); len(took) != 1 || p.Updates != 1 {
		t.Errorf("the first update of the round: %d answers, counted as %d", len(took), p.Updates)
	}
	if took := once.Choose(r, &p, due); len(took) > 0 {
		t.Error("the limit of updates does not hold at the end of a turn")
	}
}
