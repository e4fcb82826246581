package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nuid"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// readers bounds how many texts are read at once for one claim.
const readers = 16

// Claim takes what is due under the event's id, with one write however much it
// is, and acknowledges c.Acks in the same write. The same event asked again
// gets the same items. Nothing due and nothing to acknowledge costs nothing.
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
	acks, unknown := a.unsettled(c.Acks)
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
			continue // decided anew, without what has ended
		}
		if err != nil {
			cl.giveBack(err)
			return Claimed{}, err
		}
		if a.cursor.Load().Since == 0 {
			q.writeSoon(a) // the claim had nothing to write, and so did not say that the agent is there
		}
		return cl.result(), nil
	}
}

// wait returns when the mirror has told of all that was accepted here for the
// agent: an older item that was accepted elsewhere goes out first.
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

// errGone says that an item ended while it was about to go out.
var errGone = errors.New("an item ended at the same time")

// A claim is a Claim under way.
type claim struct {
	claiming
	queue *Queue
	agent *agent
	// decision is what was decided last, stored what was made of it to be stored,
	// and texts what was read for it.
	decision *decision
	stored   *plan
	texts    map[uint64]*schema.Item
}

// plan decides and gets the texts.
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

// read gets the texts that are not held in memory from the leader, and those of
// items of which it is not certain that they are still there.
func (c *claim) read(ctx context.Context, taken []*entry) error {
	var missing []*entry
	for _, e := range taken {
		if c.texts[e.seq()] == nil && (!e.held || c.queue.index.doubtful(e)) {
			missing = append(missing, e)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // guards texts, gone and errs
		errs []error
		next = make(chan *entry)
	)
	for range min(readers, len(missing)) {
		wg.Go(func() {
			for e := range next {
				it, err := c.queue.text(ctx, e)
				mu.Lock()
				if c.texts[e.seq()] = it; errors.Is(err, errGone) {
					c.gone[e.seq()] = true
				}
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	for _, e := range missing {
		next <- e
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
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

// result tells of the claim, once it is stored.
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
	c.agent.settle(c.acks)
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

// Ack says that the items of events were handed over. When it returns without
// an error, that is known for ever, or the events had none.
func (q *Queue) Ack(ctx context.Context, agent string, events []string) error {
	a, err := q.agents.get(agent)
	if err != nil {
		return invalid("the agent: %w", err)
	}
	acks, unknown := a.unsettled(events)
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
	a.settle(acks)
	for _, e := range d.acked {
		q.watch.Delivered(a.name, &e.item)
	}
	q.endSoon(a)
	return nil
}

// Hold renews the leases of events that are still to be handed over.
func (q *Queue) Hold(ctx context.Context, agent string, events []string) error {
	return q.lease(ctx, agent, events, LeaseFor)
}

// Release ends the leases of events that are not handed over: what they took along is due
// again.
func (q *Queue) Release(ctx context.Context, agent string, events []string) error {
	return q.lease(ctx, agent, events, 0)
}

// lease has the leases of events last for left.
func (q *Queue) lease(ctx context.Context, agent string, events []string, left time.Duration) error {
	a, err := q.agents.get(agent)
	if err != nil {
		return invalid("the agent: %w", err)
	}
	some, unknown := a.unsettled(events)
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

// Note changes what an agent's cursor remembers of peers in a session; without one, what
// it remembers in all of them, such as its mode. change is called with all of what may
// hold later, and more than once; it must always do the same.
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

// Peers is what the mirror knows of an agent's memory of peers in a session; without
// one, of what holds in all of them.
func (q *Queue) Peers(agent, session string) (p schema.Peers) {
	if a := q.agents.find(agent); a != nil {
		p, _ = a.cursor.Load().Peers.peers(session)
	}
	return p
}

// Seen notes that an agent is there, which calls the tool, or none. Its cursor starts
// when it is first seen. It costs no round trip.
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

// see notes it, and reports whether the cursor is to be written.
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

// claimFor is how long a claim may take to follow when an agent was seen for which
// something waits.
const claimFor = 50 * time.Millisecond

// writeLater has the cursor of an agent written that was seen, unless a claim follows
// that says so in its own write, and then waits for no other one.
func (q *Queue) writeLater(a *agent) { time.AfterFunc(claimFor, func() { q.writeSoon(a) }) }

// writeSoon has the cursor of an agent written that was seen.
func (q *Queue) writeSoon(a *agent) {
	select {
	case q.seen <- a:
	default: // there are many; it is seen again soon
		a.due.Store(false)
	}
}

// writeSeen writes the cursors of agents that were seen, in the background.
func (q *Queue) writeSeen() {
	for {
		select {
		case a := <-q.seen:
			_ = q.writeSince(q.life, a)
		case <-q.life.Done():
			return
		}
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

// writeUnsaid writes the cursors of agents that were seen of which that is stored
// nowhere: what is for many would pass them by wherever they are seen next.
func (q *Queue) writeUnsaid(ctx context.Context) (err error) {
	q.agents.each(func(a *agent) {
		if err == nil && a.first.Load() > 0 && a.cursor.Load().Since == 0 {
			err = q.writeSince(ctx, a)
		}
	})
	return err
}

// Last is the sequence of the newest item that the mirror knows.
func (q *Queue) Last() uint64 {
	return max(q.index.last(), q.items.mirror.Revision())
}
