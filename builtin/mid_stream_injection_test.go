package builtin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// answerOf returns an answer that waits.
func answerOf(sequence uint64, label, content string) *schema.Item {
	name, _, _ := strings.Cut(label, ".")
	return &schema.Item{Sequence: sequence, Source: schema.SourcePeer, Strategy: schema.UserMessage, Content: content,
		Answer: &schema.PeerAnswer{Name: name, Label: label, Workspace: "/w/" + name}}
}

// shared adds a snapshot of its workspace to an answer.
func shared(it *schema.Item) *schema.Item {
	it.Answer.Snapshot = &schema.Object{Digest: "sha256-" + it.Answer.Label, Size: 10}
	return it
}

func sequences(items []*schema.Item) (out []uint64) {
	for _, it := range items {
		out = append(out, it.Sequence)
	}
	return out
}

func TestAnswersAreTakenOnlyWhenTheOptionsAllow(t *testing.T) {
	due := []*schema.Item{
		answerOf(3, "agent1.1", "a"), {Sequence: 4, Source: "reminder", Content: "r"}, {Sequence: 5, Source: "human", Content: "h"},
		answerOf(6, "agent2.1", "b"), {Sequence: 7, Source: "peer", Content: "p"}, {Sequence: 8, Source: "timeout", Content: "t"},
	}
	all, others := []uint64{3, 4, 6, 7}, []uint64{4, 7}
	deferring := map[string]any{"defer_peer_updates_until_restart": true}
	checklist := map[string]any{"defer_peer_updates_until_restart": true, "allow_midstream_peer_updates_before_checklist_submit": true}
	round := &schema.Round{Start: 40}
	both := map[string]string{"agent1": "agent1.1", "agent2": "agent2.1"}
	for name, c := range map[string]struct {
		options map[string]any
		at      schema.EventType
		midTurn bool
		round   *schema.Round
		before  schema.Peers
		want    []uint64
		after   schema.Peers
	}{
		"the first update": {want: all, after: schema.Peers{Seen: both}},
		"a later one keeps the labels of other authors": {before: schema.Peers{Seen: map[string]string{"agent1": "agent1.0", "agent9": "agent9.3"}}, want: all,
			after: schema.Peers{Seen: map[string]string{"agent1": "agent1.1", "agent2": "agent2.1", "agent9": "agent9.3"}}},
		"the second of a round":       {round: round, before: schema.Peers{Round: 40, Updates: 1}, want: all, after: schema.Peers{Seen: both, Round: 40, Updates: 2}},
		"the third of a round":        {round: round, before: schema.Peers{Round: 40, Updates: 2}, want: others, after: schema.Peers{Round: 40, Updates: 2}},
		"the first of the next round": {round: round, before: schema.Peers{Round: 30, Updates: 2}, want: all, after: schema.Peers{Seen: both, Round: 40, Updates: 1}},
		"without a round":             {before: schema.Peers{Updates: 2}, want: all, after: schema.Peers{Seen: both, Updates: 2}},
		"the third with another cap":  {options: map[string]any{"max_updates_per_round": 3}, round: round, before: schema.Peers{Round: 40, Updates: 2}, want: all, after: schema.Peers{Seen: both, Round: 40, Updates: 3}},
		"no cap":                      {options: map[string]any{"max_updates_per_round": 0}, round: round, before: schema.Peers{Round: 40, Updates: 99}, want: all, after: schema.Peers{Seen: both, Round: 40, Updates: 100}},

		"deferred":                         {options: deferring, want: others},
		"deferred, the restart was before": {options: deferring, before: schema.Peers{Checkpoint: 2}, want: others, after: schema.Peers{Checkpoint: 2}},
		"deferred, the restart was between": {options: deferring, before: schema.Peers{Checkpoint: 3}, want: []uint64{3, 4, 7},
			after: schema.Peers{Checkpoint: 3, Seen: map[string]string{"agent1": "agent1.1"}}},
		"deferred, the restart was after": {options: deferring, before: schema.Peers{Checkpoint: 9}, want: all, after: schema.Peers{Checkpoint: 9, Seen: both}},
		"before the checklist":            {options: checklist, want: all, after: schema.Peers{Seen: both}},
		"the checklist was accepted":      {options: checklist, before: schema.Peers{Checked: 1}, want: others, after: schema.Peers{Checked: 1}},
		"the checklist of the next answer was not accepted": {options: checklist, before: schema.Peers{Answers: 1, Checked: 1}, want: all,
			after: schema.Peers{Answers: 1, Checked: 1, Seen: both}},

		"between turns, without any limit": {options: deferring, at: schema.UserPromptSubmit, round: round, before: schema.Peers{Round: 40, Updates: 2}, want: all,
			after: schema.Peers{Round: 40, Updates: 2, Seen: both}},
		"vote-only, without any limit": {options: deferring, before: schema.Peers{VoteOnly: true, Updates: 7}, want: all,
			after: schema.Peers{VoteOnly: true, Updates: 7, Seen: both}},
		"vote-only, during a turn that cannot restart": {midTurn: true, before: schema.Peers{VoteOnly: true}, want: others, after: schema.Peers{VoteOnly: true}},
		"in the midst of such a turn":                  {midTurn: true, want: all, after: schema.Peers{Seen: both}},
	} {
		t.Run(name, func(t *testing.T) {
			d := stage[delivery](t, schema.MidStreamInjection, c.options)
			r := &schema.Receiver{Routing: schema.Routing{Event: c.at, MidTurn: c.midTurn}, Peers: c.before, Round: c.round}
			p := c.before
			if diff := cmp.Diff(c.want, sequences(d.Choose(r, &p, due))); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.after, p); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

// Rendering uses the receiver's own map of seen labels, so Choose must not change it.
func TestChooseDoesNotChangeTheReceiver(t *testing.T) {
	d := stage[delivery](t, schema.MidStreamInjection, nil)
	r := &schema.Receiver{Peers: schema.Peers{Seen: map[string]string{"agent1": "agent1.1"}}}
	p := r.Peers
	d.Choose(r, &p, []*schema.Item{answerOf(1, "agent1.2", "a")})
	if diff := cmp.Diff(map[string]string{"agent1": "agent1.1"}, r.Peers.Seen); diff != "" {
		t.Errorf("the receiver changed:\n%s", diff)
	}
}

func TestTextsOfUpdates(t *testing.T) {
	known := schema.Peers{Seen: map[string]string{"agent2": "agent2.1"}}
	second := shared(answerOf(5, "agent2.2", "I built it in /w/agent2.\nRun /w/agent2/main.go, not /w/agent22/main.go.\n"))
	third := answerOf(8, "agent3.1", "See /w/agent3/notes.md")
	for name, c := range map[string]struct {
		options map[string]any
		peers   schema.Peers
		items   []*schema.Item
	}{
		"update-first":     {items: []*schema.Item{second, third}},
		"update-later":     {peers: known, items: []*schema.Item{second, third}},
		"update-checklist": {options: map[string]any{"checklist_gated": true}, peers: known, items: []*schema.Item{second}},
		"update-cut": {options: map[string]any{"max_answer_chars": 20}, peers: known,
			items: []*schema.Item{shared(answerOf(3, "agent2.2", "first")), shared(answerOf(4, "agent2.3", "second of the same author")), answerOf(6, "agent2.4", " ")}},
		"update-and-others": {peers: known, items: []*schema.Item{
			{Sequence: 1, Source: "reminder", Strategy: schema.UserMessage, Content: "save your work"}, second, {Sequence: 6, Source: "ci", Content: "build is green"},
			{Sequence: 7, Source: "ci", Content: "deploy is green"}, third, {Sequence: 9, Source: "peer", Content: "hello"}}},
	} {
		t.Run(name, func(t *testing.T) {
			out := stage[delivery](t, schema.MidStreamInjection, c.options).Render(&schema.Receiver{Peers: c.peers}, c.items)
			golden(t, name, texts(out.Injections))
			if out.Restart != nil {
				t.Errorf("it asks for a restart: %+v", out.Restart)
			}
		})
	}
}

// An agent that joins late may have an id that is another agent's alias.
func TestNoAgentReadsItsIDAsAnotherAgentsName(t *testing.T) {
	for _, id := range []string{"agent2", "Agent2", "agent2.2"} {
		d := stage[delivery](t, schema.MidStreamInjection, nil)
		r := &schema.Receiver{Routing: schema.Routing{Agent: id}}
		p := schema.Peers{}
		due := []*schema.Item{shared(answerOf(5, "agent2.2", "see /w/agent2/x")), answerOf(6, "agent22.1", "and mine")}
		out := d.Render(r, d.Choose(r, &p, due))
		text := texts(out.Injections)
		for _, want := range []string{"[peer-agent2.2]", "[agent22.1]", "see hookfabric:temp_workspaces/peer-agent2/x"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not read %q in:\n%s", id, want, text)
			}
		}
		if got := strings.ReplaceAll(text, "peer-agent2", ""); strings.Contains(got, "agent2.") || strings.Contains(got, "agent2/") {
			t.Errorf("%s reads its own id:\n%s", id, text)
		}
		want := map[string]string{"peer-agent2": "peer-agent2.2", "agent22": "agent22.1"}
		if diff := cmp.Diff(want, p.Seen); diff != "" || out.Workspaces[0].Name != "peer-agent2" || due[0].Answer.Name != "agent2" {
			t.Errorf("%s: %v, %s", id, out.Workspaces, diff)
		}
	}
}

func TestAVoteOnlyAgentIsRestarted(t *testing.T) {
	r := &schema.Receiver{Peers: schema.Peers{VoteOnly: true, Seen: map[string]string{"agent2": "agent2.1"}}}
	out := stage[delivery](t, schema.MidStreamInjection, nil).Render(r, []*schema.Item{
		shared(answerOf(5, "agent2.2", "done, see /w/agent2/x")), {Sequence: 6, Source: "reminder", Content: "r"}, answerOf(7, "agent3.1", "mine, too")})
	golden(t, "restart", out.Restart.Reason+"\n\n"+out.Restart.Content)
	want := schema.Handout{Restart: out.Restart,
		Injections: []schema.Injection{{Content: framed("SYSTEM REMINDER", "r"), Strategy: schema.ToolResult, Source: "reminder", Sequence: 6}},
		Workspaces: []schema.Workspace{{Name: "agent2", Path: "hookfabric:temp_workspaces/agent2", Snapshot: schema.Object{Digest: "sha256-agent2.2", Size: 10}}}}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// All snapshots of an author are unpacked into one folder, so only the newest is
// delivered.
func TestOnlyTheNewestSnapshotOfAnAuthorIsDelivered(t *testing.T) {
	r := &schema.Receiver{Peers: schema.Peers{Seen: map[string]string{"agent1": "agent1.1"}}}
	out := stage[delivery](t, schema.MidStreamInjection, nil).Render(r, []*schema.Item{
		shared(answerOf(1, "agent3.1", "c")), shared(answerOf(2, "agent2.1", "a")), shared(answerOf(3, "agent2.2", "b"))})
	want := []schema.Workspace{
		{Name: "agent2", Path: "hookfabric:temp_workspaces/agent2", Snapshot: schema.Object{Digest: "sha256-agent2.2", Size: 10}},
		{Name: "agent3", Path: "hookfabric:temp_workspaces/agent3", Snapshot: schema.Object{Digest: "sha256-agent3.1", Size: 10}},
	}
	if diff := cmp.Diff(want, out.Workspaces); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in := out.Injections[0]
	if diff := cmp.Diff([]uint64{1, 2, 3}, in.Sequences); diff != "" || in.Sequence != 3 {
		t.Errorf("sequence %d, all %v", in.Sequence, in.Sequences)
	}
	for _, want := range []string{"agent3.1 (new), agent2.1 -> agent2.2", "as it was at agent2.2"} {
		if !strings.Contains(in.Content, want) {
			t.Errorf("%q is not in:\n%s", want, in.Content)
		}
	}
}

// An answer in the object store follows the update, also for a vote-only agent.
func TestAnswersInTheObjectStoreAreDelivered(t *testing.T) {
	far := &schema.Object{Digest: "sha256-00", Size: 50 << 20}
	for _, voteOnly := range []bool{false, true} {
		it := answerOf(4, "agent2.1", "")
		it.Object = far
		out := stage[delivery](t, schema.MidStreamInjection, nil).Render(&schema.Receiver{Peers: schema.Peers{VoteOnly: voteOnly}}, []*schema.Item{it})
		last := schema.Injection{Object: far, Strategy: schema.UserMessage, Source: "peer", Sequence: 4, Folder: &schema.Folder{Name: "agent2", Path: "/w/agent2"}}
		if diff := cmp.Diff(last, out.Injections[len(out.Injections)-1]); diff != "" {
			t.Errorf("vote-only %v (-want +got):\n%s", voteOnly, diff)
		}
	}
}
