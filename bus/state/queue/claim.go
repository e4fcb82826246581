package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nuid"
	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// readers bounds the concurrent reads of texts for one claim.
const readers = 16

// Claim leases the due items to the event with one write, which also acknowledges c.Acks. The same event gets
// the same items again. Without due items and acknowledgements it costs no request.
func (q *Queue) Claim(ctx context.Context, c *Claim) (Claimed, error) {
	if c.ID == "" {
		return Claimed{}, invalid("the event has no id, by which its items could be acknowledged")
	}
	a, err := q.agents.get(c.Agent)
	if err != nil {
		return Claimed{}, invalid("the agent: %w", err)
	}
	if q.see(a, c.Session) {
		q.writeLater(a)
	}
	acks, unknown := a.unacked(c.Acks)
	unknown = unknown || c.Asked && a.cursor.Load().of(c.ID) == nil
	cl := claim{
		queue: q, agent: a,
		claiming: claiming{Claim: c, acks: acks, by: nuid.Next(), name: a.name, gone: make(map[uint64]bool)},
		texts:    make(map[uint64]*schema.Item),
	}
	if err := q.wait(ctx, a, c.Session); err != nil {
		return Claimed{}, err
	}
	for {
		err := q.change(ctx, a, unknown, c.Session, func(k *known, v *view) (*plan, error) { return cl.plan(ctx, k, v) })
		if errors.Is(err, errGone) {
			continue // decide again without the items that ended
		}
		if err != nil {
			cl.giveBack(err)
			return Claimed{}, err
		}
		if a.cursor.Load().Since == 0 {
			q.writeSoon(a) // the claim wrote nothing, so it did not store that the agent was seen
		}
		return cl.result(), nil
	}
}

// wait returns when the mirror has applied all items that were accepted here for the agent, because older items
// that were accepted elsewhere are delivered first.
func (q *Queue) wait(ctx context.Context, a *agent, session string) error {
	need := q.index.newestOf(a.scope, a.scopeOf(session))
	if need == 0 {
		return nil
	}
	if err := q.items.mirror.Reach(ctx, need); err != nil {
		return unavailable(err)
	}
	return nil
}

// errGone means that an item ended while it was claimed.
var errGone = errors.New("an item ended at the same time")

// A claim is a running call of Claim.
type claim struct {
	claiming
	queue *Queue
	agent *agent
	// decision is the last decision, stored its plan if there is one, and texts are the items that
	// were read for it.
	decision *decision
	stored   *plan
	texts    map[uint64]*schema.Item
}

// plan decides and reads the texts.
func (c *claim) plan(ctx context.Context, k *known, v *view) (*plan, error) {
	c.view, c.limit, c.now = v, v.position, c.queue.clock.Now()
	cur := k.begin()
	cur.Since = c.agent.since(&cur)
	d := c.decide(cur)
	c.decision = d
	if err := c.read(ctx, d.taken); err != nil {
		return nil, err
	}
	if !d.dirty {
		return nil, nil
	}
	d.cursor.tidy(v, c.name)
	p := &plan{cursor: &d.cursor}
	c.stored = p
	if len(d.acked) > 0 {
		p.begun, p.stored = append(p.begun, StepAckBegun), append(p.stored, StepAckStored)
	}
	if len(d.taken) > 0 {
		p.begun, p.stored = append(p.begun, StepClaimBegun), append(p.stored, StepClaimStored)
	}
	return p, nil
}

// read reads the items whose texts are not in memory, and those that may have ended, from the leader.
func (c *claim) read(ctx context.Context, taken []*entry) error {
	var (
		all errgroup.Group
		mu  sync.Mutex // guards texts and gone
	)
	all.SetLimit(readers)
	before := len(c.gone)
	for _, e := range taken {
		mu.Lock()
		known := c.texts[e.seq()] != nil
		mu.Unlock()
		if known || e.held && !c.queue.index.doubtful(e) {
			continue
		}
		all.Go(func() error {
			it, err := c.queue.text(ctx, e)
			mu.Lock()
			defer mu.Unlock()
			if c.texts[e.seq()] = it; errors.Is(err, errGone) {
				c.gone[e.seq()] = true
			}
			return err
		})
	}
	err := all.Wait()
	if len(c.gone) > before {
		return errGone
	}
	return err
}

// text reads an item from the leader.
func (q *Queue) text(ctx context.Context, e *entry) (*schema.Item, error) {
	m, err := q.items.Revision(ctx, e.seq())
	if err != nil {
		return nil, unavailable(err)
	}
	if m.Revision == 0 || m.Kind != kv.Put {
		return nil, cmp.Or(q.vanished(ctx, e), errGone)
	}
	q.index.trust(e)
	it, err := decode(m)
	if err != nil {
		return nil, unavailable(err)
	}
	return it, nil
}

// result returns the stored claim and reports it to the watch.
func (c *claim) result() Claimed {
	d, w := c.decision, &c.queue.watch
	for _, e := range d.acked {
		w.Delivered(c.name, &e.item)
	}
	for _, e := range d.redelivered {
		w.Redelivered(c.name, &e.item)
	}
	for _, event := range d.lapsed {
		w.LeaseExpired(c.name, event)
	}
	c.agent.rememberAcked(c.acks)
	if len(d.acked) > 0 {
		c.queue.endSoon(c.agent)
	}
	out := Claimed{Peers: d.peers, Again: d.again, More: d.more}
	for _, e := range d.taken {
		it := c.texts[e.seq()]
		if it == nil {
			own := e.item
			it = &own
		}
		out.Items = append(out.Items, it)
	}
	return out
}

// Ack acknowledges the items of events. Without an error the acknowledgement is stored, or the events had no items.
func (q *Queue) Ack(ctx context.Context, agent string, events []string) error {
	a, err := q.agents.get(agent)
	if err != nil {
		return invalid("the agent: %w", err)
	}
	acks, unknown := a.unacked(events)
	if len(acks) == 0 {
		return nil
	}
	var d *decision
	err = q.change(ctx, a, unknown, "", func(k *known, v *view) (*plan, error) {
		d = &decision{cursor: k.begin()}
		for _, event := range acks {
			d.acknowledge(event, v)
		}
		if !d.dirty {
			return nil, nil
		}
		d.cursor.tidy(v, a.name)
		return &plan{cursor: &d.cursor, begun: []Step{StepAckBegun}, stored: []Step{StepAckStored}}, nil
	})
	if err != nil {
		return err
	}
	a.rememberAcked(acks)
	for _, e := range d.acked {
		q.watch.Delivered(a.name, &e.item)
	}
	q.endSoon(a)
	return nil
}

// Hold renews the leases of events whose delivery continues.
func (q *Queue) Hold(ctx context.Context, agent string, events []string) error {
	return q.lease(ctx, agent, events, LeaseFor)
}

// Release ends the leases of events that are not delivered. Their items are due again.
func (q *Queue) Release(ctx context.Context, agent string, events []string) error {
	return q.lease(ctx, agent, events, 0)
}

// lease sets the remaining time of the leases of events.
func (q *Queue) lease(ctx context.Context, agent string, events []string, left time.Duration) error {
	a, err := q.agents.get(agent)
	if err != nil {
		return invalid("the agent: %w", err)
	}
	some, unknown := a.unacked(events)
	if len(some) == 0 {
		return nil
	}
	return q.change(ctx, a, unknown, "", func(k *known, v *view) (*plan, error) {
		cur, found := k.begin(), false
		for i := range cur.Leases {
			if l := &cur.Leases[i]; slices.Contains(some, l.Event) {
				l.Left, found = schema.Duration(left), true
			}
		}
		if !found {
			return nil, nil
		}
		cur.tidy(v, a.name)
		return &plan{cursor: &cur}, nil
	})
}

// Note changes what an agent's cursor has about peers in a session; without a session, what applies to all
// sessions, such as the mode. change is called several times, for each state that may become current, and must
// always make the same change.
func (q *Queue) Note(ctx context.Context, agent, session string, change func(*schema.Peers)) error {
	a, err := q.agents.get(agent)
	if err != nil {
		return invalid("the agent: %w", err)
	}
	return q.change(ctx, a, false, session, func(k *known, v *view) (*plan, error) {
		cur := k.begin()
		cur.Since = a.since(&cur)
		now := cur.peersIn(session, a.name, v)
		noted := now.Clone()
		change(&noted)
		same := samePeers(noted, now)
		cur.Peers.note(session, &noted)
		for i := range cur.Leases {
			if p := cur.Leases[i].Peers; p != nil && (session == "" || session == cur.Leases[i].Session) {
				before := p.Clone()
				change(&before)
				same = same && samePeers(before, *p)
				cur.Leases[i].Peers = &before
			}
		}
		if same {
			return nil, nil
		}
		cur.tidy(v, a.name)
		return &plan{cursor: &cur}, nil
	})
}

// Peers returns what the mirror has about an agent's peers in a session; without a session, what applies to all
// sessions.
func (q *Queue) Peers(agent, session string) (p schema.Peers) {
	if a := q.agents.find(agent); a != nil {
		p, _ = a.cursor.Load().Peers.peers(session)
	}
	return p
}

// Seen records that an agent exists and called a tool, or none. Its cursor starts at the first such call. It makes
// no request.
func (q *Queue) Seen(agent, session, tool string) {
	a, err := q.agents.get(agent)
	if err != nil || !q.see(a, session) {
		return
	}
	if q.Due(agent, session, tool) {
		q.writeLater(a)
		return
	}
	q.writeSoon(a)
}

// see records it in memory, and reports whether the cursor must be written.
func (q *Queue) see(a *agent, session string) bool {
	if old := a.session.Load(); session != "" && (old == nil || old.name != session) {
		a.session.Store(&sessionOf{name: session, scope: a.scopeOf(session)})
	}
	k := a.cursor.Load()
	if k.Since == 0 && a.first.Load() == 0 {
		a.first.CompareAndSwap(0, q.Last()+1)
	}
	return (k.Since == 0 || !k.created.IsZero() && q.clock.Age(k.created) >= freshFor) && a.due.CompareAndSwap(false, true)
}

// claimFor is how long to wait for a claim after an agent with due items was seen.
const claimFor = 50 * time.Millisecond

// writeLater schedules a write of an agent's cursor, because a claim usually follows and stores the same.
func (q *Queue) writeLater(a *agent) { time.AfterFunc(claimFor, func() { q.writeSoon(a) }) }

// writeSoon writes an agent's cursor in the background. If too many wait, the next call of the
// agent tries again.
func (q *Queue) writeSoon(a *agent) {
	if !later(q.jobs, func() { _ = q.writeSince(q.life, a) }) {
		a.due.Store(false)
	}
}

func (q *Queue) writeSince(ctx context.Context, a *agent) error {
	defer a.due.Store(false)
	ctx, cancel := context.WithTimeout(ctx, kv.TryFor)
	defer cancel()
	err := q.change(ctx, a, false, "", func(k *known, v *view) (*plan, error) {
		if k.Since > 0 && q.clock.Age(k.created) < freshFor {
			return nil, nil
		}
		cur := k.begin()
		cur.Since = a.since(&cur)
		cur.tidy(v, a.name)
		return &plan{cursor: &cur}, nil
	})
	if err != nil && q.life.Err() == nil {
		q.log.Info("cannot store that an agent was seen; the broker tries again when it sees the agent again", "agent", a.name, "error", err)
		_ = kv.Pause(q.life, 100*time.Millisecond)
	}
	return err
}

// writeUnsaid writes the cursors of agents that were seen here and have no stored cursor. Without one an agent
// misses items for several agents.
func (q *Queue) writeUnsaid(ctx context.Context) (err error) {
	q.agents.each(func(a *agent) {
		if err == nil && a.first.Load() > 0 && a.cursor.Load().Since == 0 {
			err = q.writeSince(ctx, a)
		}
	})
	return err
}

// Last returns the sequence of the newest known item.
func (q *Queue) Last() uint64 {
	return max(q.index.last(), q.items.mirror.Revision())
}
