package audit

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// examples bounds the violations of a kind that a report tells in words.
const examples = 10

// An Audit holds what was accepted against what was handed over. Entries of one
// log must come in their order; logs may come one after the other or mixed.
type Audit struct {
	items map[Item]*life
	// order is what each agent was handed of a source, for the first time, in order.
	order map[stream][]Item
	// accepted is how many items of each lane were.
	accepted map[lane]int
	// acked are the handovers that their shim knew to be acknowledged, by process
	// and event.
	acked map[handover]bool
	// again are the handovers of items that had been handed over before.
	again []repeat

	repeats, retried                       int
	calls                                  Calls
	contradictions, refusals, misdelivered Kind
}

// life is what the logs say of an item.
type life struct {
	accepted bool
	// turn counts the items of its lane that were accepted until then, and itself.
	turn     int
	sequence uint64
	at       int64     // when the first receipt was logged
	handed   *handover // the newest; nil: there was none
	handedAt int64     // when the first one was logged
}

// stream is what keeps its order.
type stream struct{ agent, source string }

// lane is what one producer sends item by item, each when it has the receipt of the one
// before: of these the order is known without the fabric's own word for it.
type lane struct {
	stream
	producer string
}

func (i Item) lane() lane { return lane{stream{i.Agent, i.Source}, i.Producer} }

// handover is one event's injections, handed over by one process.
type handover struct{ by, agent, event string }

// repeat is an item that was handed over once more.
type repeat struct {
	item          Item
	before, after handover
}

// A Kind is one kind of violation.
type Kind struct {
	Count int `json:"count"`
	// Examples are some of them, in words.
	Examples []string `json:"examples,omitzero"`
}

// Add counts one more of the kind.
func (k *Kind) Add(format string, args ...any) {
	k.Count++
	if len(k.Examples) < examples {
		k.Examples = append(k.Examples, fmt.Sprintf(format, args...))
	}
}

// New is an audit that has seen nothing.
func New() *Audit {
	return &Audit{items: map[Item]*life{}, order: map[stream][]Item{}, accepted: map[lane]int{}, acked: map[handover]bool{}}
}

// Take reads one entry.
func (a *Audit) Take(e Entry) {
	if e.Receipt != nil {
		a.receipt(e)
	}
	if e.Handed != nil {
		a.handed(e)
	}
	for _, event := range e.Acked {
		a.acked[handover{by: e.By, event: event}] = true
	}
	if c := e.Calls; c != nil {
		a.calls.Asked += c.Asked
		a.calls.Unanswered += c.Unanswered
		a.calls.Wrong += c.Wrong
		a.calls.Late += c.Late
		a.calls.Longest = max(a.calls.Longest, c.Longest)
		if c.Why != "" {
			a.calls.Why = c.Why
		}
	}
}

func (a *Audit) of(i Item) *life {
	l := a.items[i]
	if l == nil {
		l = &life{}
		a.items[i] = l
	}
	return l
}

func (a *Audit) receipt(e Entry) {
	r, l := e.Receipt, a.of(e.Receipt.Item)
	if r.Refused != "" {
		a.refusals.Add("%v was rejected: %s", r.Item, r.Refused)
		return
	}
	if r.Tries > 1 {
		a.retried++
	}
	if r.Duplicate {
		a.repeats++
	}
	switch {
	case !l.accepted:
		a.accepted[r.Item.lane()]++
		l.accepted, l.turn, l.sequence, l.at = true, a.accepted[r.Item.lane()], r.Sequence, e.At
	case !r.Duplicate:
		a.contradictions.Add("%v was accepted twice, as %d and as %d", r.Item, l.sequence, r.Sequence)
	case r.Sequence != 0 && l.sequence != 0 && r.Sequence != l.sequence:
		a.contradictions.Add("%v got the sequence %d, and when it was repeated %d", r.Item, l.sequence, r.Sequence)
	case l.sequence == 0:
		l.sequence = r.Sequence
	}
}

func (a *Audit) handed(e Entry) {
	h := handover{by: e.By, agent: e.Handed.Agent, event: e.Handed.Event}
	for _, i := range e.Handed.Items {
		l := a.of(i)
		if h.agent != i.Agent {
			a.misdelivered.Add("%v, handed to %s by %s", i, h.agent, h.by)
		}
		if l.handed != nil {
			a.again = append(a.again, repeat{item: i, before: *l.handed, after: h})
			l.handed = &h
			continue
		}
		l.handed, l.handedAt = &h, e.At
		s := stream{agent: h.agent, source: i.Source}
		a.order[s] = append(a.order[s], i)
	}
}

// Open counts the items that were accepted and not handed over yet.
func (a *Audit) Open() int {
	n := 0
	for _, l := range a.items {
		if l.accepted && l.handed == nil {
			n++
		}
	}
	return n
}

// Calls are what the agents asked altogether.
func (a *Audit) Calls() Calls { return a.calls }

// Waiting are the agents for which something was accepted and not handed over
// yet, in order.
func (a *Audit) Waiting() []string {
	open := map[string]bool{}
	for i, l := range a.items {
		if l.accepted && l.handed == nil {
			open[i.Agent] = true
		}
	}
	return slices.Sorted(maps.Keys(open))
}

// Unsure are the agents that were handed something by a process that was killed before
// it knew that this was acknowledged, in order: their fabric may still hold it for them.
func (a *Audit) Unsure(killed map[string]bool) []string {
	unsure := map[string]bool{}
	for i, l := range a.items {
		if h := l.handed; h != nil && killed[h.by] && !a.acked[handover{by: h.by, event: h.event}] {
			unsure[i.Agent] = true
		}
	}
	return slices.Sorted(maps.Keys(unsure))
}

// Settled counts the items with a receipt, and those that were refused.
func (a *Audit) Settled() int { return a.Accepted() + a.refusals.Count }

// Accepted counts the items that were accepted.
func (a *Audit) Accepted() int {
	n := 0
	for _, l := range a.items {
		if l.accepted {
			n++
		}
	}
	return n
}

// Findings are what the audit found. Only Excused is allowed.
type Findings struct {
	Accepted  int `json:"accepted"`
	Delivered int `json:"delivered"`
	// Repeats are receipts for what the fabric had already; Retried are those
	// for which a producer had to send more than once.
	Repeats int `json:"repeats"`
	Retried int `json:"retried"`
	// Lost was accepted and never handed over.
	Lost Kind `json:"lost"`
	// Duplicated was handed over more than once, with no killed shim to excuse it.
	Duplicated Kind `json:"duplicated"`
	// Excused was handed over again because a shim was killed between handing
	// it over and acknowledging it.
	Excused Kind `json:"excused"`
	// Disordered was handed over after a later one of its agent and source.
	Disordered Kind `json:"disordered"`
	// Unknown was handed over and never accepted.
	Unknown Kind `json:"unknown"`
	// Misdelivered was handed to another agent than it was for.
	Misdelivered Kind `json:"misdelivered"`
	// Contradictory are receipts for one item that contradict each other.
	Contradictory Kind `json:"contradictory"`
	// Refused will never be accepted, though nothing was wrong with it.
	Refused Kind `json:"refused"`
	// Early: the logs end before all was handed over, so that nothing says whether what
	// is Lost or Unknown will be for ever.
	Early bool `json:"early,omitzero"`
}

// OK reports whether every guarantee was kept.
func (f *Findings) OK() bool {
	return !slices.ContainsFunc(f.Violations(), func(v Violation) bool { return v.Kind.Count > 0 })
}

// A Violation is a kind with its name.
type Violation struct {
	Name string
	Kind Kind
}

// Violations are all kinds that there must be none of, as far as the logs can tell.
func (f *Findings) Violations() []Violation {
	all := []Violation{
		{"duplicated", f.Duplicated}, {"disordered", f.Disordered}, {"misdelivered", f.Misdelivered},
		{"contradictory receipts", f.Contradictory}, {"refused", f.Refused},
	}
	if !f.Early {
		all = append([]Violation{{"lost", f.Lost}, {"unknown", f.Unknown}}, all...)
	}
	return all
}

// Judge says what was found, given which processes were killed.
func (a *Audit) Judge(killed map[string]bool) Findings {
	f := Findings{
		Repeats: a.repeats, Retried: a.retried,
		Contradictory: a.contradictions, Refused: a.refusals, Misdelivered: a.misdelivered,
	}
	for i, l := range a.items {
		switch {
		case l.accepted && l.handed == nil:
			f.Lost.Add("%v, accepted as %d", i, l.sequence)
		case l.handed != nil && !l.accepted:
			f.Unknown.Add("%v, handed over by %s", i, l.handed.by)
		case l.handed != nil:
			f.Delivered++
		}
		if l.accepted {
			f.Accepted++
		}
	}
	for _, r := range a.again {
		a.judgeRepeat(&f, r, killed)
	}
	for s, items := range a.order {
		a.judgeOrder(&f, s, items)
	}
	return f
}

// judgeRepeat excuses a shim that was killed before it knew of the acknowledgement.
func (a *Audit) judgeRepeat(f *Findings, r repeat, killed map[string]bool) {
	known := a.acked[handover{by: r.before.by, event: r.before.event}]
	switch {
	case killed[r.before.by] && r.before.by != r.after.by && !known:
		f.Excused.Add("%v, handed over by %s, killed, and again by %s", r.item, r.before.by, r.after.by)
	case known:
		f.Duplicated.Add("%v, handed over and acknowledged by %s under %s, and again by %s under %s",
			r.item, r.before.by, r.before.event, r.after.by, r.after.event)
	default:
		f.Duplicated.Add("%v, handed over by %s under %s, and again by %s under %s",
			r.item, r.before.by, r.before.event, r.after.by, r.after.event)
	}
}

// judgeOrder compares what was handed over with the order in which it was accepted: as
// each producer saw it, of its own items, and by the sequences of the receipts, of all. An
// item that was not accepted has no place, and one whose sequence nobody was told none
// among other producers' items.
func (a *Audit) judgeOrder(f *Findings, s stream, items []Item) {
	var highest place
	turns := map[string]place{}
	for _, i := range items {
		l := a.items[i]
		if !l.accepted {
			continue
		}
		before, at := turns[i.Producer], place{i, uint64(l.turn)}
		switch {
		case at.n < before.n:
			f.Disordered.Add("%s of %s was handed over after %s of it, and had its receipt before: %v after %v", ordinal(i.Number), s.source, ordinal(before.Number), i, before.Item)
		case l.sequence != 0 && l.sequence < highest.n:
			f.Disordered.Add("%s of %s was handed over after %s of it: %v as %d after %v as %d", ordinal(i.Number), s.source, ordinal(highest.Number), i, l.sequence, highest.Item, highest.n)
		}
		turns[i.Producer] = later(before, at)
		highest = later(highest, place{i, l.sequence})
	}
}

// place is an item and where it is in an order.
type place struct {
	Item
	n uint64
}

func later(a, b place) place {
	if b.n >= a.n {
		return b
	}
	return a
}

// Waits are how long the items were on their way, from the receipt to the
// handing over.
func (a *Audit) Waits() []time.Duration {
	var waits []time.Duration
	for _, l := range a.items {
		if l.accepted && l.handed != nil {
			waits = append(waits, max(time.Duration(l.handedAt-l.at), 0))
		}
	}
	slices.Sort(waits)
	return waits
}
