package queue

import (
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// mostTaken bounds the items of one event.
const mostTaken = 1000

// A decision is the change of a cursor by a claim.
type decision struct {
	cursor cursor
	// dirty: the cursor has changed.
	dirty bool
	taken []*entry
	peers schema.Peers
	again bool
	more  int
	// acked are the items of acknowledged events.
	acked []*entry
	// redelivered are the taken items that were delivered before, and lapsed the events whose leases
	// have lost all of their items to this one.
	redelivered []*entry
	lapsed      []string
}

// claiming is the input of a decision.
type claiming struct {
	*Claim
	// acks are the acknowledgements that are not known yet.
	acks []string
	by   string // id of the claim
	name string // of the agent
	view *view
	// limit is the sequence up to which all items are known.
	limit uint64
	// now is the server's time.
	now time.Time
	// gone are items that have ended.
	gone map[uint64]bool
}

// decide decides what the claim takes.
func (c *claiming) decide(cur cursor) *decision {
	d := &decision{cursor: cur}
	for _, event := range c.acks {
		d.acknowledge(event, c.view)
	}
	if l := d.cursor.of(c.ID); l != nil && c.repeat(d, l) {
		return d
	}
	due, again := c.due(&d.cursor)
	if len(due) == 0 {
		d.peers = c.known(&d.cursor)
		return d
	}
	c.take(d, due, again)
	return d
}

// acknowledge ends the lease of an event, and finishes its items.
func (d *decision) acknowledge(event string, v *view) {
	for _, seq := range d.cursor.drop(event) {
		d.dirty = true
		d.cursor.finish(seq)
		if e := v.known[seq]; e != nil {
			d.acked = append(d.acked, e)
		}
	}
}

// repeat takes what the same event took before, if it still exists.
func (c *claiming) repeat(d *decision, l *lease) bool {
	for _, seq := range l.Seqs {
		if e := c.view.known[seq]; e != nil && !c.gone[seq] {
			d.taken = append(d.taken, e)
		}
	}
	if len(d.taken) == 0 {
		return false
	}
	d.again, d.peers = true, c.known(&d.cursor)
	if l.Peers != nil {
		d.peers = l.Peers.Clone()
	}
	if l.Left < schema.Duration(LeaseFor*2/3) || l.By != c.by {
		l.Left, l.By, d.dirty = schema.Duration(LeaseFor), c.by, true
	}
	return true
}

// due returns the items that may be delivered with the event, in order, and those of them that were leased to an
// event whose lease has ended.
func (c *claiming) due(cur *cursor) (due []*entry, again map[uint64]string) {
	held, blocked := make(map[uint64]bool), make(map[string]bool)
	again = make(map[uint64]string)
	for _, l := range cur.Leases {
		for _, seq := range l.Seqs {
			switch {
			case l.Event == c.ID:
			case l.Left <= 0:
				again[seq] = l.Event
			default:
				held[seq] = true
				if e := c.view.known[seq]; e != nil && (!c.Channel || e.item.Matcher == "") {
					blocked[e.item.Source] = true
				}
			}
		}
	}
	for _, e := range c.view.merged() {
		if !held[e.seq()] && !blocked[e.item.Source] && c.fits(cur, e) {
			due = append(due, e)
		}
	}
	return due, again
}

// fits reports whether the item is for the agent now.
func (c *claiming) fits(cur *cursor, e *entry) bool {
	return e.seq() <= c.limit && !c.gone[e.seq()] && !cur.done(e) && cur.meant(e, c.name) && !e.over(c.now) && e.fits(c.Tool, c.Any)
}

// take chooses due items and leases them to the event.
func (c *claiming) take(d *decision, due []*entry, again map[uint64]string) {
	before := c.known(&d.cursor)
	ended := c.ended(&d.cursor, due, again)
	if len(ended) > 0 {
		before = d.cursor.Peers.without(ended...)
	}
	peers, taken, more := c.choose(before, due)
	wentOut := func(e *entry) bool { return again[e.seq()] != "" }
	if len(ended) > 0 && !slices.ContainsFunc(taken, wentOut) {
		// Items of ended leases stay there, and so does what was noted about peers with them.
		ended, before = nil, c.known(&d.cursor)
		peers, taken, more = c.choose(before, slices.DeleteFunc(slices.Clone(due), wentOut))
	}
	d.peers, d.taken, d.more = before.Clone(), taken, more
	if len(taken) == 0 {
		return
	}
	d.dirty = true
	for _, l := range ended {
		l.Updates = 0
	}
	d.release(again, c.Session)
	l := lease{Event: c.ID, By: c.by, Left: schema.Duration(LeaseFor), Session: c.Session}
	for _, e := range taken {
		l.Seqs = append(l.Seqs, e.seq())
	}
	if !samePeers(peers, d.peers) {
		noted := d.peers.Clone()
		l.Peers = &noted
		l.count(&peers)
	}
	d.cursor.Peers.note(c.Session, &peers)
	d.cursor.drop(c.ID) // its items no longer exist
	d.cursor.Leases = append(d.cursor.Leases, l)
}

// known returns what the agent knows about peers in the session of the event.
func (c *claiming) known(cur *cursor) schema.Peers { return cur.peersIn(c.Session, c.name, c.view) }

// ended returns the leases of the event's session, oldest first, that have ended, have due items, and changed what
// the agent knows about peers.
func (c *claiming) ended(cur *cursor, due []*entry, again map[uint64]string) (all []*lease) {
	if len(again) == 0 {
		return nil
	}
	for i := range cur.Leases {
		l := &cur.Leases[i]
		if l.Peers != nil && l.Session == c.Session && slices.ContainsFunc(due, func(e *entry) bool { return again[e.seq()] == l.Event }) {
			all = append(all, l)
		}
	}
	return all
}

// release removes the taken items from ended leases. What those leases of the session noted about peers is noted
// again.
func (d *decision) release(again map[uint64]string, session string) {
	for _, e := range d.taken {
		event := again[e.seq()]
		if event == "" {
			continue
		}
		d.redelivered = append(d.redelivered, e)
		l := d.cursor.of(event)
		l.Seqs = slices.DeleteFunc(l.Seqs, func(seq uint64) bool { return seq == e.seq() })
		if l.Session == session {
			l.Peers = nil
		}
		if len(l.Seqs) == 0 {
			d.cursor.drop(event)
			d.lapsed = append(d.lapsed, event)
		}
	}
}

// choose makes the claim choose, and cuts the choice to the limits.
func (c *claiming) choose(before schema.Peers, due []*entry) (schema.Peers, []*entry, int) {
	peers, chosen := c.ask(before, due)
	fitting := c.cut(chosen)
	if len(fitting) == len(chosen) {
		return peers, chosen, 0
	}
	// Choose again, so that only delivered items change what the agent knows about peers.
	peers, taken := c.ask(before, fitting)
	return peers, taken, len(chosen) - len(taken)
}

// ask calls Choose with a copy of the agent's knowledge about peers.
func (c *claiming) ask(base schema.Peers, due []*entry) (schema.Peers, []*entry) {
	peers := base.Clone()
	if c.Choose == nil {
		return peers, due
	}
	items, bySeq := make([]*schema.Item, len(due)), make(map[uint64]*entry, len(due))
	for i, e := range due {
		items[i], bySeq[e.seq()] = &e.item, e
	}
	var chosen []*entry
	for _, it := range c.Choose(&peers, items) {
		if e := bySeq[it.Sequence]; e != nil {
			chosen = append(chosen, e)
			delete(bySeq, it.Sequence)
		}
	}
	return peers, chosen
}

// cut returns as many items from the start as may be delivered at once, at least one. Objects are limited to what a
// shim fetches for one event, because otherwise it could never acknowledge them.
func (c *claiming) cut(chosen []*entry) []*entry {
	n, outside := 0, int64(0)
	for i, e := range chosen {
		n += e.size
		if e.item.Object != nil {
			outside += e.item.Object.Size
		}
		if i > 0 && (i == mostTaken || c.MaxBytes > 0 && n > c.MaxBytes || outside > schema.MaxText) {
			return chosen[:i]
		}
	}
	return chosen
}
