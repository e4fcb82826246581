package builtin

import (
	"fmt"
	"maps"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// defaultUpdates is how many updates with other agents' answers an agent gets in a round.
const defaultUpdates = 2

// midStreamOptions are the options of "mid_stream_injection".
type midStreamOptions struct {
	endOptions
	// MaxUpdates is how many updates with other agents' answers the agent gets in a
	// round, each with any number of answers; 0: no limit; absent: 2.
	MaxUpdates *int `json:"max_updates_per_round"`
	// Defer delays other agents' answers until the agent starts again: at SessionStart,
	// with a new round, or when a checkpoint is recorded.
	Defer bool `json:"defer_peer_updates_until_restart"`
	// BeforeChecklist delivers deferred answers as long as no checklist was accepted for
	// the agent's current answer.
	BeforeChecklist bool `json:"allow_midstream_peer_updates_before_checklist_submit"`
	// Checklist makes the agent submit its checklist before anything else.
	Checklist bool `json:"checklist_gated"`
	// MaxAnswer cuts each answer after that many characters; 0: no limit.
	MaxAnswer int `json:"max_answer_chars"`
}

// midStream is the hook "mid_stream_injection": it delivers other agents' answers to a
// busy agent, and all items that no other hook takes.
type midStream struct {
	midStreamOptions
	updates int
}

func newMidStreamInjection(h schema.Hook) (any, error) {
	o, err := options[midStreamOptions](h)
	if err != nil {
		return nil, err
	}
	if err := o.check(h); err != nil {
		return nil, err
	}
	m := &midStream{o, defaultUpdates}
	if o.MaxUpdates != nil {
		m.updates = *o.MaxUpdates
	}
	for name, n := range map[string]int{"max_updates_per_round": m.updates, "max_answer_chars": o.MaxAnswer} {
		if n < 0 {
			return nil, fmt.Errorf("the option %q of %q is %d; write 0 for no limit, or more", name, h.Handler, n)
		}
	}
	if o.BeforeChecklist && !o.Defer {
		return nil, fmt.Errorf("the option \"allow_midstream_peer_updates_before_checklist_submit\" of %q has no effect "+
			"unless updates are deferred; set defer_peer_updates_until_restart, too", h.Handler)
	}
	return m, nil
}

// Choose takes answers if the agent may read them now, and every item that no other hook
// takes.
func (m *midStream) Choose(r *schema.Receiver, p *schema.Peers, due []*schema.Item) []*schema.Item {
	if m.waits(r) {
		return nil
	}
	passes := m.passes(r, p)
	seen := maps.Clone(p.Seen)
	updated := false
	out := chosen(due, func(it *schema.Item) bool {
		if it.Answer == nil {
			return general(it.Source)
		}
		if !passes(it) {
			return false
		}
		if seen == nil {
			seen = map[string]string{}
		}
		a := it.Answer.For(r.Agent)
		seen[a.Name], updated = a.Label, true
		return true
	})
	if updated {
		p.Seen = seen
		m.count(r, p)
	}
	return out
}

// Defers reports whether answers may wait until the agent starts again.
func (m *midStream) Defers() bool { return m.Defer }

// general reports whether no other hook takes items of a source.
func general(source string) bool {
	switch source {
	case schema.SourceHuman, schema.SourceSubagent, schema.SourceBackground, schema.SourceTimeout:
		return false
	}
	return true
}

// passes returns a filter for the answers that the agent may read now. A vote-only agent
// reads them only when its turn can restart, and then no other limit applies. Between two
// turns they interrupt nothing, so no limit applies either.
func (m *midStream) passes(r *schema.Receiver, p *schema.Peers) func(*schema.Item) bool {
	if p.VoteOnly && r.MidTurn {
		return func(*schema.Item) bool { return false }
	}
	if p.VoteOnly || betweenTurns(r) {
		return func(*schema.Item) bool { return true }
	}
	if m.updates > 0 && updatesIn(r, p) >= m.updates {
		return func(*schema.Item) bool { return false }
	}
	early := m.BeforeChecklist && p.Checked != p.Answers+1
	return func(it *schema.Item) bool { return !m.Defer || early || it.Sequence <= p.Checkpoint }
}

// updatesIn counts the updates of the agent's round. Without rounds the count is 0,
// because no later round would lift the limit.
func updatesIn(r *schema.Receiver, p *schema.Peers) int {
	if r.Round == nil || r.Round.Start != p.Round {
		return 0
	}
	return p.Updates
}

// betweenTurns reports whether the agent's turn is about to begin. It is also true for
// runtimes that can take items only at that event.
func betweenTurns(r *schema.Receiver) bool { return r.Event == schema.UserPromptSubmit }

// count records one more update in the middle of a turn.
func (m *midStream) count(r *schema.Receiver, p *schema.Peers) {
	if p.VoteOnly || betweenTurns(r) || r.Round == nil {
		return
	}
	p.Updates, p.Round = updatesIn(r, p)+1, r.Round.Start
}

// Render puts all answers into one text, at the place of the first, and each run of other
// messages into one.
func (m *midStream) Render(r *schema.Receiver, items []*schema.Item) schema.Handout {
	answers := chosen(items, func(it *schema.Item) bool { return it.Answer != nil })
	var out schema.Handout
	var others []*schema.Item
	flush := func() {
		out.Injections = append(out.Injections, rendered(others, messageTitle, messages).Injections...)
		others = nil
	}
	for _, it := range items {
		if it.Answer == nil {
			others = append(others, it)
		} else if it == answers[0] {
			flush()
			m.answers(r, answers, &out)
		}
	}
	flush()
	return m.ends(r, out)
}

// answers adds the update with the answers.
func (m *midStream) answers(r *schema.Receiver, answers []*schema.Item, out *schema.Handout) {
	u := newUpdate(r, answers)
	u.limit = m.MaxAnswer
	out.Workspaces = u.workspaces
	strategy := schema.UserMessage
	switch {
	case r.Peers.VoteOnly:
		out.Restart = &schema.Restart{Reason: "new answers to vote on: " + u.transitions(), Content: u.restart(m.Checklist)}
	case len(r.Peers.Seen) == 0:
		out.Injections = append(out.Injections, injectionOf(u.first(m.Checklist), strategy, answers))
	default:
		strategy = schema.ToolResult
		out.Injections = append(out.Injections, injectionOf(u.further(m.Checklist), strategy, answers))
	}
	for _, it := range chosen(answers, apart) {
		out.Injections = append(out.Injections, textOf(it, strategy))
	}
}

// messageTitle returns the title of a message, which names its source.
func messageTitle(it *schema.Item) string {
	switch it.Source {
	case schema.SourceReminder:
		return "SYSTEM REMINDER"
	case schema.SourcePeer:
		return "MESSAGE FROM ANOTHER AGENT"
	}
	return "MESSAGE FROM " + it.Source
}

// messages renders a run of messages of one source. They are indented, so that another
// agent's text does not look like the fabric's.
func messages(run []*schema.Item) string {
	var texts []string
	for _, it := range run {
		text := plain(it)
		if it.Source == schema.SourcePeer {
			text = indented(text, "  ")
		}
		texts = append(texts, text)
	}
	return framed(messageTitle(run[0]), strings.Join(texts, "\n\n"))
}
