package audit

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
)

// An Audit compares accepted items with delivered items. Entries of one log must come in
// their order. Logs may come one after the other or mixed.
type Audit struct {
	items map[Item]*life
	// order has the items that each agent got from each source, without repeats, in order.
	order map[stream][]Item
	// accepted is the number of accepted items of each lane.
	accepted map[lane]int
	// acked are the handovers whose shim knew of the acknowledgement, by process and event.
	acked map[handover]bool
	// again are the handovers of items that had been handed over before.
	again []repeat

	attempts []Attempt
	found    Findings // so far
}

// life is the log's information about an item.
type life struct {
	accepted bool
	// turn is the number of accepted items of its lane, including this one.
	turn     int
	sequence uint64
	at       int64     // when the first receipt was logged
	handed   *handover // the newest; nil: not handed over
	handedAt int64     // when the first one was logged
}

// stream identifies a sequence of items that stay in order.
type stream struct{ agent, source string }

// lane identifies the items that one producer sends one by one, each after the receipt of
// the one before. Their order is known without the sequences of the fabric.
type lane struct {
	stream
	producer string
}

func (i Item) lane() lane { return lane{stream{i.Agent, i.Source}, i.Producer} }

// handover is one event's injections, handed over by one process.
type handover struct{ by, agent, event string }

// repeat is an item that was handed over again.
type repeat struct {
	item          Item
	before, after handover
}

// New returns an empty audit.
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

// Open counts the items that were accepted and not yet handed over.
func (a *Audit) Open() int {
	n := 0
	for _, l := range a.items {
		if l.accepted && l.handed == nil {
			n++
		}
	}
	return n
}

// Waiting returns the agents with items that were accepted and not yet handed over, in
// order.
func (a *Audit) Waiting() []string {
	open := map[string]bool{}
	for i, l := range a.items {
		if l.accepted && l.handed == nil {
			open[i.Agent] = true
		}
	}
	return slices.Sorted(maps.Keys(open))
}

// Attempts returns the requests of producers that stay at one broker, in the order of their
// answers.
func (a *Audit) Attempts() []Attempt {
	slices.SortStableFunc(a.attempts, func(x, y Attempt) int { return x.Answered.Compare(y.Answered) })
	return a.attempts
}

// Unsure returns the agents, in order, that got items from a process that was killed before
// it knew of the acknowledgement. Their fabric may still hold these items.
func (a *Audit) Unsure(killed map[string]bool) []string {
	unsure := map[string]bool{}
	for i, l := range a.items {
		if h := l.handed; h != nil && killed[h.by] && !a.acked[handover{by: h.by, event: h.event}] {
			unsure[i.Agent] = true
		}
	}
	return slices.Sorted(maps.Keys(unsure))
}

// Settled counts the accepted and the refused items.
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

// Judge returns the findings, given which processes were killed.
func (a *Audit) Judge(killed map[string]bool) Findings {
	f := a.found
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

// judgeRepeat excuses a repeat if the shim was killed before it knew of the
// acknowledgement.
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

// judgeOrder compares the order of the handovers with the order of acceptance: for each
// producer the order of its own items, and for all items the order of their sequences. It
// skips items that were not accepted. An item without a sequence is compared only with
// items of its producer.
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

// place is an item and its position in an order.
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

// Waits returns how long the items were on their way, from the receipt to the handover.
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

// Findings are the result of an audit. Only Excused is allowed.
type Findings struct {
	Accepted, Delivered int
	// Lost was accepted and never delivered.
	Lost Violation
	// Duplicated was delivered more than once, and no killed process excuses it.
	Duplicated Violation
	// Excused was delivered again because a process was killed between delivery and
	// acknowledgement.
	Excused Violation
	// Disordered was delivered after a later message of its agent and source.
	Disordered Violation
	// Unknown was delivered and never accepted.
	Unknown Violation
	// Misdelivered was delivered to another agent.
	Misdelivered Violation
	// Contradictory are receipts for one message that contradict each other.
	Contradictory Violation
	// Refused was rejected for good, although it was valid.
	Refused Violation
	// Early means that the logs end before everything was delivered: Lost and Unknown do not
	// count then.
	Early bool
}

// A Violation counts one kind of broken promise, with examples.
type Violation struct{ report.Check }

func (v *Violation) add(format string, args ...any) { v.Fail(fmt.Sprintf(format, args...)) }

// NeverSent adds messages that their producers never sent to the lost ones.
func (f *Findings) NeverSent(n, of int) {
	f.Lost.add("%d of %d messages were never sent to the queue", n, of)
}

// Checks returns the promises about messages, each of which was at stake for all accepted or
// all delivered messages, and at least so many of them.
func (f *Findings) Checks(least int64) []report.Check {
	accepted, delivered := int64(f.Accepted), int64(f.Delivered)
	of := func(name string, v Violation, seen int64) report.Check {
		v.Name, v.Seen, v.Least = name, seen, least
		return v.Check
	}
	all := []report.Check{
		of("no message was delivered twice", f.Duplicated, delivered),
		of("messages arrived in the order of their agent and source", f.Disordered, delivered),
		of("no message was delivered to another agent", f.Misdelivered, delivered),
		of("all receipts of a message agree", f.Contradictory, accepted),
		of("no message was rejected", f.Refused, accepted),
	}
	if f.Early {
		return all
	}
	return append([]report.Check{
		of("every accepted message was delivered", f.Lost, accepted),
		of("no message was delivered that was never accepted", f.Unknown, delivered),
	}, all...)
}
