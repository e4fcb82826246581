package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// An Item is one injection waiting in the queue.
type Item struct {
	schema.Injection
	// Agent or Session says whom it is for; both empty is everybody.
	Agent   string
	Session string
	// Matcher picks tools, as a hook's does; an event without a tool fits only
	// a matcher that fits every tool. Empty is every event.
	Matcher string
	// Expires ends it; zero is never.
	Expires time.Time
	// LateJoiners: a broadcast that also goes to agents first seen after it.
	LateJoiners bool
	// Held: the agent's mode, or a deferral, keeps it back at this event.
	Held bool
}

// A Lease says which items went out under an event and are not acknowledged.
type Lease struct {
	Event     string
	Sequences []uint64
	// Ends is when the items are pending again.
	Ends time.Time
}

// A Cursor is how far one agent has read its queue.
type Cursor struct {
	Agent string
	// Since is the stream's sequence when the agent was first seen.
	Since uint64
	// Done are the sequences that were handed over and acknowledged.
	Done []uint64
	// Leases are kept until they are acknowledged or their items go out again.
	Leases []Lease
}

// Term is how long a lease holds unless it is renewed.
const Term = 30 * time.Second

// Claim says which of the queued items an event takes along when its verdict
// has been folded, in stream order, and what the cursor is afterwards.
func (c Cursor) Claim(e schema.Event, d schema.Decision, items []Item, now time.Time) ([]Item, Cursor) {
	if blocks(e.HookType, d) {
		return nil, c
	}
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b Item) int { return cmp.Compare(a.Sequence, b.Sequence) })
	// A claim is bound to the event, so that asking again gets the same items.
	for _, l := range c.Leases {
		if l.Event == e.EventID && now.Before(l.Ends) {
			return among(items, l.Sequences), c
		}
	}
	var claimed []Item
	for _, i := range items {
		if c.waits(i, e, now) && !c.leased(i, items, now) {
			claimed = append(claimed, i)
		}
	}
	return claimed, c.lease(e.EventID, claimed, now.Add(Term))
}

// blocks: a verdict that blocks or ends claims nothing. A deny on the Post
// events is feedback, which holds no delivery back, and a retry goes on.
func blocks(t schema.EventType, d schema.Decision) bool {
	if d == schema.Deny {
		return t == schema.PreToolUse || t == schema.UserPromptSubmit
	}
	return d == schema.Fail || d == schema.Stop
}

// waits: the item is for this agent, still to be read, and fits this moment.
// One that does not fit holds back no later one.
func (c Cursor) waits(i Item, e schema.Event, now time.Time) bool {
	switch {
	case slices.Contains(c.Done, i.Sequence), i.Held:
		return false
	case !i.Expires.IsZero() && !now.Before(i.Expires):
		return false
	case !matches(i.Matcher, e.ToolName):
		return false
	case i.Agent != "": // the agent's own items are never skipped
		return i.Agent == c.Agent
	case i.Session != "" && i.Session != e.SessionID:
		return false
	}
	return i.LateJoiners || i.Sequence > c.Since
}

// leased: an open lease keeps its own items and, so that an agent reads each
// source in order, all later ones of the same source.
func (c Cursor) leased(i Item, items []Item, now time.Time) bool {
	for _, l := range c.Leases {
		if !now.Before(l.Ends) {
			continue
		}
		for _, out := range among(items, l.Sequences) {
			if i.Sequence == out.Sequence || i.Source == out.Source && i.Sequence > out.Sequence {
				return true
			}
		}
	}
	return false
}

func among(items []Item, sequences []uint64) []Item {
	var out []Item
	for _, i := range items {
		if slices.Contains(sequences, i.Sequence) {
			out = append(out, i)
		}
	}
	return out
}

// lease puts items out under an event. Earlier leases lose them: an
// acknowledgement counts only for the event under which an item last went out.
func (c Cursor) lease(event string, items []Item, ends time.Time) Cursor {
	if len(items) == 0 {
		return c
	}
	taken := Lease{Event: event, Ends: ends}
	for _, i := range items {
		taken.Sequences = append(taken.Sequences, i.Sequence)
	}
	leases := []Lease{taken}
	for _, l := range c.Leases {
		l.Sequences = slices.DeleteFunc(slices.Clone(l.Sequences), func(s uint64) bool {
			return slices.Contains(taken.Sequences, s)
		})
		if len(l.Sequences) > 0 {
			leases = append(leases, l)
		}
	}
	c.Leases = leases
	return c
}

// Ack says that an event's items were handed over. It counts after the lease
// has ended too, unless the items went out under another event meanwhile.
func (c Cursor) Ack(event string) Cursor {
	var open []Lease
	done := slices.Clone(c.Done)
	for _, l := range c.Leases {
		if l.Event == event {
			done = append(done, l.Sequences...)
		} else {
			open = append(open, l)
		}
	}
	c.Done, c.Leases = done, open
	return c
}
