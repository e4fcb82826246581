package queue

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// A cursor is the stored state of an agent: what it received, and what is leased to it. Every decision about
// deliveries is a compare-and-set of this one key.
type cursor struct {
	// Since is the first sequence after the agent was first seen; 0: it was not seen yet. Earlier items
	// for several agents are not for it.
	Since uint64 `json:"since,omitzero"`
	// At is up to which sequence the writer knew the items. A reader that knows fewer must not take
	// items that are missing here for undelivered ones.
	At uint64 `json:"at,omitzero"`
	// AckedTo is the sequence up to which the agent needs no more of its own items and of those for all
	// agents. It does not apply to items of sessions, because an agent may change its session.
	AckedTo uint64 `json:"acked_to,omitzero"`
	// DoneAbove are the other items that it does not need and that are still in the bucket, in order.
	DoneAbove []uint64 `json:"done_above,omitzero"`
	// Ends are its own items that ended without a delivery, until they are removed.
	Ends []ending `json:"ends,omitzero"`
	// Leases are the leased items, oldest first.
	Leases []lease `json:"leases,omitzero"`
	// Peers is what it knows about other agents.
	Peers memory `json:"peers,omitzero"`
}

// An ending is the end of an agent's own item.
type ending struct {
	Seq   uint64           `json:"seq"`
	State schema.ItemState `json:"state"`
}

// A lease holds items for an event.
type lease struct {
	Event string   `json:"event"`
	Seqs  []uint64 `json:"seqs"`
	// By is the claim that took them last. Another one does not release them.
	By string `json:"by,omitzero"`
	// Left is the remaining time when this was written; 0: it has ended.
	Left schema.Duration `json:"left,omitzero"`
	// Session is the session of the event. Peers is what was known about peers in it before the event, if
	// the event changed that. Earlier releases wrote "peers" for all sessions, which is ignored.
	Session string        `json:"session,omitzero"`
	Peers   *schema.Peers `json:"before,omitzero"`
	// Updates is how many updates the event counted, in the round Round.
	Round   uint64 `json:"round,omitzero"`
	Updates int    `json:"updates,omitzero"`
}

// count records how many updates the event counted, from the state after it.
func (l *lease) count(after *schema.Peers) {
	l.Round, l.Updates = after.Round, after.Updates
	if l.Peers.Round == after.Round {
		l.Updates = max(0, after.Updates-l.Peers.Updates)
	}
}

// readCursor decodes and checks the value of a cursor's key.
func readCursor(value []byte) (cursor, error) {
	var c cursor
	if err := schema.Unmarshal(value, &c); err != nil {
		return cursor{}, err
	}
	if !slices.IsSorted(c.DoneAbove) {
		return cursor{}, errors.New("what is done is not in order")
	}
	for _, e := range c.Ends {
		if e.State != schema.Expired && e.State != schema.Withdrawn {
			return cursor{}, fmt.Errorf("an item ended as %.32q", e.State)
		}
	}
	for _, l := range c.Leases {
		if l.Event == "" || l.Left < 0 || l.Updates < 0 {
			return cursor{}, errors.New("a lease has no event, or a negative time or number of updates")
		}
	}
	return c, nil
}

// clone returns a deep copy in which the leases have less time left.
func (c *cursor) clone(elapsed time.Duration) cursor {
	n := *c
	n.DoneAbove, n.Ends, n.Leases = slices.Clone(c.DoneAbove), slices.Clone(c.Ends), slices.Clone(c.Leases)
	for i := range n.Leases {
		l := &n.Leases[i]
		l.Seqs = slices.Clone(l.Seqs)
		l.Left = max(0, l.Left-schema.Duration(elapsed))
	}
	n.Peers = c.Peers.clone()
	return n
}

// done reports whether the agent does not need the item any more.
func (c *cursor) done(e *entry) bool {
	if e.kind != forSession && e.seq() <= c.AckedTo {
		return true
	}
	_, found := slices.BinarySearch(c.DoneAbove, e.seq())
	return found
}

// finish records that the agent does not need the item any more.
func (c *cursor) finish(seq uint64) {
	if i, found := slices.BinarySearch(c.DoneAbove, seq); !found {
		c.DoneAbove = slices.Insert(c.DoneAbove, i, seq)
	}
}

// ended returns how a finished item ended.
func (c *cursor) ended(seq uint64) schema.ItemState {
	for _, e := range c.Ends {
		if e.Seq == seq {
			return e.State
		}
	}
	return schema.Delivered
}

// leased returns the lease of the item, or nil.
func (c *cursor) leased(seq uint64) *lease {
	for i := range c.Leases {
		if slices.Contains(c.Leases[i].Seqs, seq) {
			return &c.Leases[i]
		}
	}
	return nil
}

// of returns the lease of an event, or nil.
func (c *cursor) of(event string) *lease {
	for i := range c.Leases {
		if c.Leases[i].Event == event {
			return &c.Leases[i]
		}
	}
	return nil
}

// drop removes the lease of an event and returns its items.
func (c *cursor) drop(event string) (seqs []uint64) {
	c.Leases = slices.DeleteFunc(c.Leases, func(l lease) bool {
		if l.Event != event {
			return false
		}
		seqs = append(seqs, l.Seqs...)
		return true
	})
	return seqs
}

// meant reports whether the item is for the agent called name. An item for several agents is not for its author, and
// not for agents that appeared later.
func (c *cursor) meant(e *entry, name string) bool {
	if e.kind == forAgent {
		return true
	}
	return e.item.Except != name && (e.item.LateJoiners || c.Since > 0 && e.seq() >= c.Since)
}

// tidy removes what is not needed any more, given the known items.
func (c *cursor) tidy(v *view, name string) {
	first := v.position + 1
	for _, items := range [][]*entry{v.own, v.all} {
		for _, e := range items {
			if e.seq() >= first {
				break
			}
			if !c.done(e) && (c.Since == 0 || c.meant(e, name)) {
				first = e.seq()
				break
			}
		}
	}
	c.AckedTo = max(c.AckedTo, first-1)
	c.At = max(c.At, v.position)
	c.DoneAbove = slices.DeleteFunc(c.DoneAbove, func(seq uint64) bool {
		e, there := v.there(seq)
		return !there || e != nil && e.kind != forSession && seq <= c.AckedTo
	})
	c.Ends = slices.DeleteFunc(c.Ends, func(e ending) bool { _, there := v.there(e.Seq); return !there })
	c.Leases = slices.DeleteFunc(c.Leases, func(l lease) bool {
		return !slices.ContainsFunc(l.Seqs, func(seq uint64) bool { _, there := v.there(seq); return there })
	})
}
