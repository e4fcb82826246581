package queue

import (
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// mostTaken bounds how many items go out with one event.
const mostTaken = 1000

// A decision is what a claim does to a cursor.
type decision struct {
	cursor cursor
	// dirty: the cursor is another one.
	dirty bool
	taken []*entry
	peers schema.Peers
	again bool
	more  int
	// acked went out with the events that were acknowledged.
	acked []*entry
	// redelivered of the taken had gone out before, and lapsed are the events whose
	// leases ended with that.
	redelivered []*entry
	lapsed      []string
}

// claiming is what a decision is made from.
type claiming struct {
	*Claim
	// acks are those of the claim that are not settled.
	acks []string
	by   string // the claim's own name
	name string // the agent's
	view *view
	// limit is up to where the items are known without a gap.
	limit uint64
	// now is the server's time.
	now time.Time
	// gone are items that were found to have ended.
	gone map[uint64]bool
}

// decide says what the claim takes, of what the cursor allows.
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

// acknowledge ends the lease of an event.
func (d *decision) acknowledge(event string, v *view) {
	for _, seq := range d.cursor.drop(event) {
		d.dirty = true
		d.cursor.finish(seq)
		if e := v.known[seq]; e != nil {
			d.acked = append(d.acked, e)
		}
	}
}

// repeat takes what the same event took before, if that is still there.
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

// due is what may go out with the event, in order, and which of it went out
// before with an event whose lease has ended.
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

// fits reports whether the item is for the agent, now.
func (c *claiming) fits(cur *cursor, e *entry) bool {
	return e.seq() <= c.limit && !c.gone[e.seq()] && !cur.done(e) && cur.meant(e, c.name) && !e.over(c.now) && e.fits(c.Tool, c.Any)
}

// take chooses of what is due and leases it to the event.
func (c *claiming) take(d *decision, due []*entry, again map[uint64]string) {
	before := c.known(&d.cursor)
	ended := c.ended(&d.cursor, due, again)
	if len(ended) > 0 {
		before = d.cursor.Peers.without(ended...)
	}
	peers, taken, more := c.choose(before, due)
	wentOut := func(e *entry) bool { return again[e.seq()] != "" }
	if len(ended) > 0 && !slices.ContainsFunc(taken, wentOut) {
		// What went out before stays where it is, and so does what was noted with it.
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
	d.cursor.drop(c.ID) // it held what is gone
	d.cursor.Leases = append(d.cursor.Leases, l)
}

// known is what the agent knows of peers in the session of the event.
func (c *claiming) known(cur *cursor) schema.Peers { return cur.peersIn(c.Session, c.name, c.view) }

// ended are the leases of the event's session, oldest first, that have ended, whose items
// are due, and with which something was noted of peers.
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

// release takes what is taken out of the leases that have ended. What was noted with
// those of the session is noted anew.
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

// choose has the claim choose, and cuts what is too much.
func (c *claiming) choose(before schema.Peers, due []*entry) (schema.Peers, []*entry, int) {
	peers, chosen := c.ask(before, due)
	fitting := c.cut(chosen)
	if len(fitting) == len(chosen) {
		return peers, chosen, 0
	}
	// Anew, so that what is noted of peers is only of what goes out.
	peers, taken := c.ask(before, fitting)
	return peers, taken, len(chosen) - len(taken)
}

// ask calls Choose with a copy of what is known of peers.
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

// cut returns as much from the start as may go out at once, at least one. Of
// texts that lie in the object store that is no more than an agent's side
// fetches for one event: else it could acknowledge none of it, for ever.
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
