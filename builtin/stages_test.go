package builtin

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

var rewrite = flag.Bool("update", false, "write the golden files from what the hooks say")

// delivery is the interface of delivery hooks for the aggregator.
type delivery interface {
	Choose(r *schema.Receiver, p *schema.Peers, due []*schema.Item) []*schema.Item
	Render(r *schema.Receiver, items []*schema.Item) schema.Handout
}

// gate is the interface of the gate for the aggregator.
type gate interface {
	Passes(tool string) bool
	Refuse(tool string, r *schema.Round) schema.Result
}

// stage makes a stage of type T.
func stage[T any](t testing.TB, handler string, options map[string]any) T {
	t.Helper()
	s, err := Stage(&schema.Hook{Name: "test", Type: schema.Builtin, Handler: handler, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	is, ok := s.(T)
	if !ok {
		t.Fatalf("%s is a %T", handler, s)
	}
	return is
}

// golden compares a text for agents with a file, so that a person reviews every change.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
		t.Errorf("what the agent reads differs from %s (-file +code):\n%s", path, diff)
	}
}

// texts joins the texts of injections.
func texts(in []schema.Injection) string {
	var all []string
	for _, i := range in {
		all = append(all, "<"+string(i.Strategy)+">\n"+i.Content)
	}
	return strings.Join(all, "\n\n")
}

func TestEveryStageLoadsInAggregatorAndWorker(t *testing.T) {
	for _, name := range append(schema.DeliveryStages(), schema.RoundTimeoutPre) {
		if name == schema.RoundTimeoutPre {
			stage[gate](t, name, nil)
		} else {
			stage[delivery](t, name, nil)
		}
		h, err := Catalog(nil)[name](schema.Hook{Name: "test", Handler: name, Event: schema.PostToolUse})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Handle(t.Context(), event(schema.PostToolUse)); err == nil || !strings.Contains(err.Error(), "stage of the aggregator") {
			t.Errorf("a worker that runs %s says %v", name, err)
		}
	}
	if n := len(stages()); n != len(schema.DeliveryStages())+1 {
		t.Errorf("%d stages", n)
	}
}

func TestAnUnknownStageIsAnErrorThatListsStages(t *testing.T) {
	_, err := Stage(&schema.Hook{Handler: "log"})
	if err == nil || !strings.Contains(err.Error(), `"log" is not a stage`) || !strings.Contains(err.Error(), "human_input, mid_stream_injection") {
		t.Errorf("error %v", err)
	}
}

func TestEveryStageRejectsInvalidOptions(t *testing.T) {
	for name, c := range map[string]struct {
		handler string
		options map[string]any
		want    string
	}{
		"human input has one":           {schema.HumanInput, map[string]any{"label": "x"}, `"human_input" has no option "label"; it has at_end`},
		"an unknown tool":               {schema.RoundTimeoutPre, map[string]any{"terminal_tools": []any{}}, "names no tool"},
		"an empty tool":                 {schema.RoundTimeoutPre, map[string]any{"terminal_tools": []any{"vote", ""}}, "names no tool"},
		"tools that are not a list":     {schema.RoundTimeoutPre, map[string]any{"terminal_tools": "vote"}, "must be a list"},
		"a negative cap":                {schema.MidStreamInjection, map[string]any{"max_updates_per_round": -1}, "write 0 for no limit"},
		"a negative length":             {schema.MidStreamInjection, map[string]any{"max_answer_chars": -1}, "write 0 for no limit"},
		"half a cap":                    {schema.MidStreamInjection, map[string]any{"max_updates_per_round": 1.5}, "must be a whole number"},
		"an unknown end of a turn":      {schema.MidStreamInjection, map[string]any{"at_end": "never"}, `the option "at_end" of "mid_stream_injection" is "never"; write retry`},
		"an unknown option":             {schema.MidStreamInjection, map[string]any{"x": 1}, "it has at_end, max_updates_per_round"},
		"an exception without its rule": {schema.MidStreamInjection, map[string]any{"allow_midstream_peer_updates_before_checklist_submit": true}, "set defer_peer_updates_until_restart, too"},
		"a result with an option":       {schema.SubagentComplete, map[string]any{"x": 1}, "it has at_end"},
		"a job with an option":          {schema.BackgroundToolComplete, map[string]any{"at_end": "stop"}, "write retry"},
		"a warning with an option":      {schema.RoundTimeoutPost, map[string]any{"at_end": true}, "must be a string"},
	} {
		t.Run(name, func(t *testing.T) {
			h := schema.Hook{Name: "test", Handler: c.handler, Options: c.options}
			_, err := Stage(&h)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if _, err := Catalog(nil)[c.handler](h); err == nil {
				t.Error("a worker loads it")
			}
		})
	}
}

// drawItem draws an item of any form and source.
func drawItem(sequence uint64) *rapid.Generator[*schema.Item] {
	return rapid.Custom(func(t *rapid.T) *schema.Item {
		it := &schema.Item{
			Sequence: sequence, Source: rapid.SampledFrom([]string{"human", "peer", "subagent", "background", "reminder", "timeout", "ci"}).Draw(t, "source"),
			Strategy: rapid.SampledFrom([]schema.Strategy{schema.ToolResult, schema.UserMessage}).Draw(t, "strategy"),
		}
		switch rapid.IntRange(0, 6).Draw(t, "form") {
		case 0:
			name := rapid.SampledFrom([]string{"agent1", "agent2", "agent3"}).Draw(t, "name")
			it.Source, it.Answer = schema.SourcePeer, &schema.PeerAnswer{Name: name, Label: name + ".1", Workspace: "/w/a"}
			if rapid.Bool().Draw(t, "shared") {
				it.Answer.Snapshot = &schema.Object{Digest: "sha256-00"}
			}
		case 1:
			it.Subagent = &schema.SubagentResult{ID: "s", Status: "failed"}
		case 2:
			it.Background = &schema.BackgroundResult{ID: "b", Tool: "t", Status: "completed"}
		case 3:
			it.TimeLimit = &schema.TimeLimit{Round: 1}
		case 4:
			it.Object = &schema.Object{Digest: "sha256-11", Size: 1 << 30}
			return it
		}
		it.Content = rapid.StringN(0, 8, -1).Draw(t, "content")
		return it
	})
}

// drawDue draws a receiver and its waiting items, in order.
func drawDue(t *rapid.T) (due []*schema.Item, r *schema.Receiver) {
	sequence := uint64(0)
	for range rapid.IntRange(0, 12).Draw(t, "items") {
		sequence += uint64(rapid.IntRange(1, 3).Draw(t, "gap"))
		due = append(due, drawItem(sequence).Draw(t, "item"))
	}
	r = &schema.Receiver{Peers: schema.Peers{VoteOnly: rapid.Bool().Draw(t, "vote only"), Updates: rapid.IntRange(0, 3).Draw(t, "updates")}}
	if rapid.Bool().Draw(t, "in a round") {
		r.Round = &schema.Round{Start: uint64(rapid.IntRange(1, 3).Draw(t, "round"))}
	}
	if rapid.Bool().Draw(t, "seen some") {
		r.Peers.Seen = map[string]string{"agent2": "agent2.1"}
	}
	return due, r
}

// In any order, each hook takes from the remaining items, keeps their order, and delivers
// each item that it took once.
func TestStagesDeliverEachItemOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rest, r := drawDue(t)
		capped := rapid.Bool().Draw(t, "capped")
		for _, name := range schema.DeliveryStages() {
			var o map[string]any
			if name == schema.MidStreamInjection && !capped {
				o = map[string]any{"max_updates_per_round": 0}
			}
			made, err := Stage(&schema.Hook{Handler: name, Options: o})
			if err != nil {
				t.Fatal(err)
			}
			d, p := made.(delivery), r.Peers
			took := d.Choose(r, &p, rest)
			rest = without(t, rest, took)
			saysAll(t, took, d.Render(r, took))
		}
		for _, it := range rest {
			if it.Answer == nil || r.Peers.VoteOnly || !capped {
				t.Errorf("no stage takes %+v", it)
			}
		}
	})
}

// without returns due without the items in took, which must be a subsequence of due.
func without(t *rapid.T, due, took []*schema.Item) (rest []*schema.Item) {
	for _, it := range due {
		if len(took) > 0 && took[0] == it {
			took = took[1:]
		} else {
			rest = append(rest, it)
		}
	}
	if len(took) > 0 {
		t.Fatalf("took %d items that were not due, or not in order", len(took))
	}
	return rest
}

// saysAll fails unless out delivers every item, and only injections with text.
func saysAll(t *rapid.T, took []*schema.Item, out schema.Handout) {
	delivered := map[uint64]bool{}
	for _, in := range out.Injections {
		if in.Content == "" && in.Object == nil || !in.Strategy.Known() || in.Source == "" || in.Sequence == 0 || len(in.Sequences) == 1 {
			t.Errorf("an injection without text or object: %+v", in)
		}
		if len(in.Sequences) > 0 && (!slices.IsSorted(in.Sequences) || in.Sequences[len(in.Sequences)-1] != in.Sequence) {
			t.Errorf("the sequences %v, and last %d", in.Sequences, in.Sequence)
		}
		for _, s := range append(in.Sequences, in.Sequence) {
			delivered[s] = true
		}
	}
	for _, it := range took {
		if it.Answer != nil && out.Restart != nil {
			continue
		}
		if !delivered[it.Sequence] {
			t.Errorf("%+v was taken and not delivered", it)
		}
	}
}
