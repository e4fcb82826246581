package audit

import (
	"maps"
	"slices"
	"time"
)

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

	attempts         []Attempt
	repeats, retried int
	found            Findings // so far
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
	if e.Attempt != nil {
		a.attempts = append(a.attempts, *e.Attempt)
	}
	for _, event := range e.Acked {
		a.acked[handover{by: e.By, event: event}] = true
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
		a.found.Refused.add("%v was rejected: %s", r.Item, r.Refused)
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
		a.found.Contradictory.add("%v was accepted twice, as %d and as %d", r.Item, l.sequence, r.Sequence)
	case r.Sequence != 0 && l.sequence != 0 && r.Sequence != l.sequence:
		a.found.Contradictory.add("%v got the sequence %d, and when it was repeated %d", r.Item, l.sequence, r.Sequence)
	case l.sequence == 0:
		l.sequence = r.Sequence
	}
}

func (a *Audit) handed(e Entry) {
	h := handover{by: e.By, agent: e.Handed.Agent, event: e.Handed.Event}
	for _, i := range e.Handed.Items {
		l := a.of(i)
		if h.agent != i.Agent {
			a.found.Misdelivered.add("%v, handed to %s by %s", i, h.agent, h.by)
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

// Attempts are the requests of producers that stay at one broker, by the time of their answer.
func (a *Audit) Attempts() []Attempt {
	slices.SortStableFunc(a.attempts, func(x, y Attempt) int { return x.Answered.Compare(y.Answered) })
	return a.attempts
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
func (a *Audit) Settled() int { return a.Accepted() + int(a.found.Refused.Wrong) }

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

// Judge says what was found, given which processes were killed.
func (a *Audit) Judge(killed map[string]bool) Findings {
	f := a.found
	f.Repeats, f.Retried = a.repeats, a.retried
	for i, l := range a.items {
		switch {
		case l.accepted && l.handed == nil:
			f.Lost.add("%v, accepted as %d", i, l.sequence)
		case l.handed != nil && !l.accepted:
			f.Unknown.add("%v, handed over by %s", i, l.handed.by)
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
		f.Excused.add("%v, handed over by %s, killed, and again by %s", r.item, r.before.by, r.after.by)
	case known:
		f.Duplicated.add("%v, handed over and acknowledged by %s under %s, and again by %s under %s",
			r.item, r.before.by, r.before.event, r.after.by, r.after.event)
	default:
		f.Duplicated.add("%v, handed over by %s under %s, and again by %s under %s",
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
			f.Disordered.add("%s of %s was handed over after %s of it, and had its receipt before: %v after %v", ordinal(i.Number), s.source, ordinal(before.Number), i, before.Item)
		case l.sequence != 0 && l.sequence < highest.n:
			f.Disordered.add("%s of %s was handed over after %s of it: %v as %d after %v as %d", ordinal(i.Number), s.source, ordinal(highest.Number), i, l.sequence, highest.Item, highest.n)
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
