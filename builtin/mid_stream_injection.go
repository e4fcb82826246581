package builtin

import (
	"fmt"
	"maps"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// defaultUpdates is how often in a round an agent is told of others' answers.
const defaultUpdates = 2

// midStreamOptions are the options of "mid_stream_injection".
type midStreamOptions struct {
	endOptions
	// MaxUpdates is how often in a round the agent is told of others' answers,
	// however many answers that are; 0: no bound; absent: 2.
	MaxUpdates *int `json:"max_updates_per_round"`
	// Defer keeps others' answers back until the agent starts again: at SessionStart, with
	// a new round, or when a checkpoint is noted.
	Defer bool `json:"defer_peer_updates_until_restart"`
	// BeforeChecklist lets them through all the same until a checklist was
	// accepted for the answer that the agent works on.
	BeforeChecklist bool `json:"allow_midstream_peer_updates_before_checklist_submit"`
	// Checklist sends the agent through its checklist before anything else.
	Checklist bool `json:"checklist_gated"`
	// MaxAnswer cuts each answer after so many characters; 0: it is not cut.
	MaxAnswer int `json:"max_answer_chars"`
}

// midStream is the hook "mid_stream_injection": it tells a busy agent of the
// other agents' answers, and of everything that no other hook takes.
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

// Choose takes answers when the agent may be told of them, and everything else
// that is no other hook's at once.
func (m *midStream) Choose(r *schema.Receiver, p *schema.Peers, due []*schema.Item) []*schema.Item {
	if m.waits(r) {
		return nil
	}
	passes := m.passes(r, p)
	seen := maps.Clone(p.Seen)
	told := false
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
		seen[a.Name], told = a.Label, true
		return true
	})
	if told {
		p.Seen = seen
		m.count(r, p)
	}
	return out
}

// Defers reports whether answers may have to wait until the agent starts again.
func (m *midStream) Defers() bool { return m.Defer }

// general reports whether a source is none that another hook takes.
func general(source string) bool {
	switch source {
	case schema.SourceHuman, schema.SourceSubagent, schema.SourceBackground, schema.SourceTimeout:
		return false
	}
	return true
}

// passes tells which answers the agent may be told of now. Those that reach it
// by a restart wait for a moment at which the agent's turn can begin anew, and for
// nothing else: a restart is what the others wait for. Those that reach it between
// two turns interrupt nothing.
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

// updatesIn counts the updates of the agent's round. Where there are no rounds
// none counts: no later one would let through what the bound held back.
func updatesIn(r *schema.Receiver, p *schema.Peers) int {
	if r.Round == nil || r.Round.Start != p.Round {
		return 0
	}
	return p.Updates
}

// betweenTurns reports whether the agent's turn is only to begin. That is also
// when a runtime takes all that waits because it cannot be told otherwise.
func betweenTurns(r *schema.Receiver) bool { return r.Event == schema.UserPromptSubmit }

// count notes one more update in the midst of a turn.
func (m *midStream) count(r *schema.Receiver, p *schema.Peers) {
	if p.VoteOnly || betweenTurns(r) || r.Round == nil {
		return
	}
	p.Updates, p.Round = updatesIn(r, p)+1, r.Round.Start
}

// Render puts all answers into one text, at the first one's place, and each run
// of other messages into one.
func (m *midStream) Render(r *schema.Receiver, items []*schema.Item) schema.Handout {
	answers := chosen(items, func(it *schema.Item) bool { return it.Answer != nil })
	var out schema.Handout
	var others []*schema.Item
	flush := func() {
		out.Injections = append(out.Injections, handed(others, messageTitle, messages).Injections...)
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

// answers adds what the agent is told of answers.
func (m *midStream) answers(r *schema.Receiver, answers []*schema.Item, out *schema.Handout) {
	u := newUpdate(r, answers)
	u.limit = m.MaxAnswer
	out.Workspaces = u.workspaces
	strategy := schema.UserMessage
	switch {
	case r.Peers.VoteOnly:
		out.Restart = &schema.Restart{Reason: "new answers to vote on: " + u.transitions(), Content: u.restart(m.Checklist)}
	case len(r.Peers.Seen) == 0:
		out.Injections = append(out.Injections, said(u.first(m.Checklist), strategy, answers))
	default:
		strategy = schema.ToolResult
		out.Injections = append(out.Injections, said(u.later(m.Checklist), strategy, answers))
	}
	for _, it := range chosen(answers, apart) {
		out.Injections = append(out.Injections, textOf(it, strategy))
	}
}

// messageTitle names a message by who says it.
func messageTitle(it *schema.Item) string {
	switch it.Source {
	case schema.SourceReminder:
		return "SYSTEM REMINDER"
	case schema.SourcePeer:
		return "MESSAGE FROM ANOTHER AGENT"
	}
	return "MESSAGE FROM " + it.Source
}

// messages is a run of messages of one source. What another agent says must not
// pass for what the fabric does.
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
