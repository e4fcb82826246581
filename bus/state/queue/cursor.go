package queue

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// A cursor is what is stored of an agent: what it got, and what is on its way
// to it. All that is decided about who gets what is decided by a compare-and-set
// of this one key.
type cursor struct {
	// Since is the first sequence that was not there yet when the agent was first
	// seen; 0: it was not seen yet. What is for many and was there before passes it by.
	Since uint64 `json:"since,omitzero"`
	// At is up to where the items were known to who wrote this: who knows less of
	// them must not read it as if what is not named here were still to come.
	At uint64 `json:"at,omitzero"`
	// AckedTo is up to where the agent needs nothing more of its own items and of
	// those for all. It says nothing of sessions' items, since an agent may change
	// its session.
	AckedTo uint64 `json:"acked_to,omitzero"`
	// DoneAbove are the other items that it needs no more and that are still in the
	// bucket, in order.
	DoneAbove []uint64 `json:"done_above,omitzero"`
	// Ends are those of its own items that ended otherwise than by delivery, until
	// they are gone.
	Ends []ending `json:"ends,omitzero"`
	// Leases are what is on its way, oldest first.
	Leases []lease `json:"leases,omitzero"`
	// Peers is what it knows of other agents.
	Peers memory `json:"peers,omitzero"`
}

// An ending is how an agent's own item ended.
type ending struct {
	Seq   uint64           `json:"seq"`
	State schema.ItemState `json:"state"`
}

// A lease holds items for the event that took them along.
type lease struct {
	Event string   `json:"event"`
	Seqs  []uint64 `json:"seqs"`
	// By is the claim that took them, or took them again: another one does not
	// give them back.
	By string `json:"by,omitzero"`
	// Left is how long it held when this was written; 0: not any more.
	Left schema.Duration `json:"left,omitzero"`
	// Session is the one that the event was in, and Peers what was known of peers there
	// before the event, if the event changed it. Releases that noted no sessions wrote
	// "peers", of all sessions, which is not read.
	Session string        `json:"session,omitzero"`
	Peers   *schema.Peers `json:"before,omitzero"`
	// Updates is how many of the agent's updates the event counted, in the round Round.
	Round   uint64 `json:"round,omitzero"`
	Updates int    `json:"updates,omitzero"`
}

// count notes how many updates the event counted, by what is known after it.
func (l *lease) count(after *schema.Peers) {
	l.Round, l.Updates = after.Round, after.Updates
	if l.Peers.Round == after.Round {
		l.Updates = max(0, after.Updates-l.Peers.Updates)
	}
}

// readCursor reads the value of a cursor's key.
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

// clone returns a cursor that can be changed, whose leases are older by that.
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

// done reports whether the agent needs the item no more.
func (c *cursor) done(e *entry) bool {
	if e.kind != forSession && e.seq() <= c.AckedTo {
		return true
	}
	_, found := slices.BinarySearch(c.DoneAbove, e.seq())
	return found
}

// finish notes that the agent needs the item no more.
func (c *cursor) finish(seq uint64) {
	if i, found := slices.BinarySearch(c.DoneAbove, seq); !found {
		c.DoneAbove = slices.Insert(c.DoneAbove, i, seq)
	}
}

// ended is how an item that is done ended.
func (c *cursor) ended(seq uint64) schema.ItemState {
	for _, e := range c.Ends {
		if e.Seq == seq {
			return e.State
		}
	}
	return schema.Delivered
}

// leased returns the lease that the item is in, or nil.
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

// drop takes the lease of an event away and returns what it held.
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

// meant reports whether the item is for the agent at all, which is called name.
// What is for many is not for its author, and not for who came later.
func (c *cursor) meant(e *entry, name string) bool {
	if e.kind == forAgent {
		return true
	}
	return e.item.Except != name && (e.item.LateJoiners || c.Since > 0 && e.seq() >= c.Since)
}

// tidy drops what need not be said any more: v is what is known of the items.
func (c *cursor) tidy(v *view, name string) {
	first := v.position + 1
	for _, line := range [][]*entry{v.own, v.all} {
		for _, e := range line {
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
