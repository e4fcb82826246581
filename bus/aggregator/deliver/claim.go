package deliver

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// delivery is one delivery of the items that wait for an agent: a claim, and what the stages render
// from it.
type delivery struct {
	*Deliverer

	act *stages.Config
	// hooks are the delivery stages, in order, as indexes of the configuration.
	hooks []int
	room  room
	to    schema.Receiver
	// by is the stage that chose an item, by the item's sequence.
	by     map[uint64]int
	faults []fault
}

func (s *Deliverer) newDelivery(act *stages.Config, hooks []int, most room, to schema.Receiver) *delivery {
	return &delivery{Deliverer: s, act: act, hooks: hooks, room: most, to: to, by: make(map[uint64]int)}
}

// fault is a failure of a stage.
type fault struct {
	hook int
	kind schema.OutcomeKind
	what string
}

// deliver adds the items that wait for the agent to a complete verdict, and stores the
// acknowledgements in the same write. It reports whether it did.
func (s *Deliverer) deliver(act *stages.Config, plan *dispatch.Plan, req *dispatch.Request, acks []string, v *schema.Verdict) bool {
	q := s.opt.Queue
	if q == nil || req.Mute || !delivers(plan, req.Event) || req.Event.Blocks(v.Decision) {
		return false
	}
	room := s.room(filled(v))
	if room.content < minContent {
		return false
	}
	ctx, cancel := s.opt.Life.ForCall(req.Deadline)
	defer cancel()
	round := s.Round(req.Agent)
	direct := directWarning{round: round}
	if round != nil && round.SoftDue() && act.Warns(plan) {
		direct.item = s.Warn(ctx, act, round, req.ID)
		round = s.Round(req.Agent)
	}
	brings := s.brings(&req.Routing, req.Attempt)
	if !brings && direct.item == nil {
		return false
	}
	d := s.newDelivery(act, plan.Deliver, room, schema.Receiver{Routing: req.Routing, Round: round})
	claim := &queue.Claim{Routing: req.Routing, Asked: req.Attempt > 1, Acks: acks, Choose: d.choose, MaxBytes: room.content}
	if len(plan.Deliver) == 0 {
		d.hooks, claim.Choose = act.Deliverers(req.Agent), d.chooseAnew
	}
	if claim.Asked {
		claim.Choose = nothing
	}
	span := req.Span.Child(trace.Internal, "deliver", "")
	defer span.Done()
	var claimed queue.Claimed
	var err error
	if brings {
		claimed, err = q.Claim(ctx, claim)
	}
	span.Number(trace.Injections, int64(len(claimed.Items)))
	if err != nil {
		span.Fail("the agent's messages could not be delivered with this call")
		s.opt.Report.Ledger.Cut.Inc()
		s.opt.Report.Log.Unreachable(observe.QueueStore, err)
		d.addTo(v, nil)
		return false
	}
	if brings {
		s.opt.Report.Log.Reachable(observe.QueueStore)
		s.acks.note(req.Agent, acks)
		v.Acked = append(v.Acked, acks...)
	}
	made := d.renderAll(ctx, &claimed, direct)
	d.askRetry(v, made)
	d.addTo(v, made)
	return brings
}

// nothing chooses no further items for a repeated event, which gets only the items that it had
// before. The reply to the first request may still arrive and be acknowledged. That must not
// acknowledge items that no agent has seen.
func nothing(*schema.Peers, []*schema.Item) []*schema.Item { return nil }

// brings reports whether a claim could bring items. Items that went out with the event before are
// not due, but a repeated event gets them again. It may also reach a broker that does not know of
// them yet.
func (s *Deliverer) brings(r *schema.Routing, attempt int) bool {
	q := s.opt.Queue
	return attempt > 1 || q.Due(r.Agent, r.Session, r.Tool) || q.Holds(r.Agent, r.ID)
}

// choose returns the due items that the stages choose. Each stage chooses from those that the
// stages before it left.
func (d *delivery) choose(p *schema.Peers, due []*schema.Item) (all []*schema.Item) {
	clear(d.by)
	d.faults = nil
	d.to.Peers = p.Clone()
	rest := d.broken.without(due)
	for _, hook := range d.hooks {
		for _, it := range d.chosen(hook, p, rest) {
			d.by[it.Sequence] = hook
		}
		var left []*schema.Item
		for _, it := range rest {
			if _, taken := d.by[it.Sequence]; !taken {
				left = append(left, it)
			}
		}
		rest = left
	}
	for _, it := range due {
		if _, taken := d.by[it.Sequence]; taken {
			all = append(all, it)
		}
	}
	return all
}

// delivers reports whether an event may deliver items. A prompt may even without a delivery stage:
// see [delivery.chooseAnew].
func delivers(plan *dispatch.Plan, t schema.EventType) bool {
	return len(plan.Deliver) > 0 || t == schema.UserPromptSubmit
}

// chooseAnew chooses the peers' answers that an agent's next turn begins with, at an event without
// a delivery stage. A runtime that cannot restart in the middle of a turn has not received them.
func (d *delivery) chooseAnew(p *schema.Peers, due []*schema.Item) []*schema.Item {
	if !p.VoteOnly {
		return nil
	}
	return d.choose(p, slices.DeleteFunc(slices.Clone(due), func(it *schema.Item) bool { return it.Answer == nil }))
}

// chosen returns the items that one stage chooses. A stage that panics chooses none.
func (d *delivery) chosen(hook int, p *schema.Peers, due []*schema.Item) (items []*schema.Item) {
	st := d.act.Stage(hook)
	if st.Delivery == nil || len(due) == 0 {
		if st.Err != nil {
			d.fault(hook, schema.LoadError, fmt.Sprintf("its handler cannot be loaded: %v", st.Err))
		}
		return nil
	}
	before := p.Clone()
	defer func() {
		if r := recover(); r != nil {
			*p, items = before, nil
			d.panicked(hook, r)
		}
	}()
	return st.Delivery.Choose(&d.to, p, due)
}

func (d *delivery) panicked(hook int, r any) {
	bus.InTrace(d.opt.Logger, d.to.Trace).Error("a stage panicked", "hook", d.name(hook), "agent", d.to.Agent, "event_id", d.to.ID, "panic", r, "stack", string(debug.Stack()))
	d.fault(hook, schema.Errored, fmt.Sprintf("it panicked: %v", r))
}

func (d *delivery) fault(hook int, kind schema.OutcomeKind, what string) {
	d.faults = append(d.faults, fault{hook, kind, what})
}

func (d *delivery) name(hook int) string { return d.act.Hook(hook).Name }

// rendering is what a stage rendered from its items.
type rendering struct {
	hook int
	schema.Handout
	// items is the number of items. decided is the hook's decision about the turn.
	items   int
	decided schema.Decision
	took    time.Duration
}

// renderAll has each stage render the items that it chose. If one stage cannot, nothing is delivered:
// the items stay with the event, whose acknowledgement would count for all of them, and come again
// after the lease. A warning without room in the queue may come in addition to the claimed items.
func (d *delivery) renderAll(ctx context.Context, c *queue.Claimed, direct directWarning) (all []rendering) {
	if c.Again {
		p := c.Peers.Clone()
		d.choose(&p, c.Items)
	}
	items := c.Items
	if direct.item != nil && d.takes(direct.item) && d.bringsWarning(ctx, direct.round, d.to.ID) {
		items = append(slices.Clone(items), direct.item)
	}
	d.updateRound(ctx, items)
	all, ok := d.renderings(d.inline(ctx, items))
	if ok && length(all) > d.room.whole {
		all, ok = d.renderings(items) // texts that can be fetched are left to be
		d.shorten(all)
	}
	if !ok {
		return nil
	}
	return all
}

// renderings returns what the stages render from the items, and reports whether it is complete.
func (d *delivery) renderings(chosen []*schema.Item) (all []rendering, whole bool) {
	items := make(map[int][]*schema.Item)
	for _, it := range chosen {
		hook, ok := d.by[it.Sequence]
		if !ok {
			d.fault(d.hooks[0], schema.Errored, fmt.Sprintf("no hook delivers item %d any more; it will be delivered again", it.Sequence))
			return nil, false
		}
		items[hook] = append(items[hook], it)
	}
	whole = true
	for _, hook := range d.hooks {
		if len(items[hook]) == 0 {
			continue
		}
		h, ok := d.rendered(hook, items[hook])
		if !ok {
			d.broken.add(items[hook])
		}
		whole = whole && ok
		all = append(all, h)
	}
	return all, whole
}

// updateRound reads the agent's round if an item warns that the round's time is over. A broker that was
// cut off may hold the warning of an earlier round, which must not count for this one.
func (d *delivery) updateRound(ctx context.Context, items []*schema.Item) {
	if slices.ContainsFunc(items, func(it *schema.Item) bool { return it.TimeLimit != nil }) {
		d.to.Round, _ = d.latest(ctx, d.to.Agent, d.to.Round) // or as it is known here
	}
}

// rendered returns what a stage renders from its items, and reports whether that can be delivered.
func (d *delivery) rendered(hook int, items []*schema.Item) (h rendering, ok bool) {
	began := time.Now()
	h.hook, h.items = hook, len(items)
	defer func() {
		if r := recover(); r != nil {
			d.panicked(hook, r)
			ok = false
		}
	}()
	h.Handout = d.act.Stage(hook).Delivery.Render(&d.to, items)
	d.finish(&h, items)
	h.took = time.Since(began)
	if len(h.Injections) == 0 && h.Restart == nil {
		d.fault(hook, schema.Errored, fmt.Sprintf("it did not deliver %d items; they will be delivered again", len(items)))
		return h, false
	}
	return h, true
}

// finish adds the fields that a stage may have left out, and drops empty injections.
func (d *delivery) finish(h *rendering, items []*schema.Item) {
	some := h.Injections[:0]
	for _, in := range h.Injections {
		if in.Content != "" || in.Object != nil {
			some = append(some, in)
		}
	}
	h.Injections = some
	for _, it := range items {
		if it.Object != nil && it.Content == "" && !leaves(&h.Handout, it.Object) {
			h.Injections = append(h.Injections, schema.Injection{Strategy: it.Strategy, Source: it.Source, Sequence: it.Sequence, Object: it.Object})
		}
	}
	for i := range h.Injections {
		in := &h.Injections[i]
		if !in.Strategy.Known() {
			in.Strategy = schema.ToolResult
		}
		if in.Sequence == 0 {
			label(in, share(i, len(h.Injections), items))
		}
		if in.Source == "" {
			in.Source = items[0].Source
		}
	}
}

// share returns the items that an injection belongs to: its own if there are as many injections as
// items, else all.
func share(i, n int, items []*schema.Item) []*schema.Item {
	if n == len(items) {
		return items[i : i+1]
	}
	return items
}

// label sets the sequences of the items in an injection.
func label(in *schema.Injection, items []*schema.Item) {
	in.Sequence = items[len(items)-1].Sequence
	if len(items) > 1 {
		in.Sequences = make([]uint64, len(items))
		for i, it := range items {
			in.Sequences[i] = it.Sequence
		}
	}
}

// askRetry makes the agent continue instead of ending its turn if a stage asks for that: the agent
// would never read what comes with its last message. A retry that hooks decided carries the items
// unchanged.
func (d *delivery) askRetry(v *schema.Verdict, all []rendering) {
	t, n := d.to.Event, 0
	if !t.Permits(schema.Retry) || t.Terminal(v.Decision) {
		return
	}
	for i := range all {
		if h := &all[i]; h.Retry {
			n += h.items
			h.decided = schema.Retry
		}
	}
	if n == 0 {
		return
	}
	reason := "1 message arrived before your turn ended; continue with it"
	if n > 1 {
		reason = fmt.Sprintf("%d messages arrived before your turn ended; continue with them", n)
	}
	acked := v.Acked
	*v = dispatch.Fold(t, *v, schema.Verdict{Decision: schema.Retry, Reason: reason})
	v.Acked = acked
}

// addTo adds what the stages rendered to the verdict, each at its hook's place.
func (d *delivery) addTo(v *schema.Verdict, all []rendering) {
	for i := range all {
		h := &all[i]
		d.act.Place(v, h.hook, schema.ExecutedHook{Decision: h.decided, Outcome: schema.OK, Duration: schema.Duration(h.took)}, h.Injections)
		v.Workspaces = append(v.Workspaces, h.Workspaces...)
		switch {
		case h.Restart == nil:
		case v.Restart == nil:
			v.Restart = h.Restart
		default:
			v.Restart.Content += "\n\n" + h.Restart.Content
		}
	}
	for _, f := range d.faults {
		d.act.Place(v, f.hook, schema.ExecutedHook{Outcome: f.kind, Error: f.what}, nil)
		v.HookErrors = append(v.HookErrors, fmt.Sprintf("hook %q: %s", d.name(f.hook), f.what))
	}
}

const (
	// maxBroken bounds the items that are remembered because they cannot be rendered.
	maxBroken = 4096
	// mendTime is how long such an item waits before a stage tries it again.
	mendTime = 5 * time.Minute
)

// broken holds the items that some stage could not render. Like a lease, such an item delays the
// later items of its source, and no others.
type broken struct {
	mu    sync.Mutex
	until map[uint64]time.Time // by sequence; guarded by mu
}

func (b *broken) add(items []*schema.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until == nil || len(b.until) >= maxBroken {
		b.until = make(map[uint64]time.Time)
	}
	for _, it := range items {
		b.until[it.Sequence] = time.Now().Add(mendTime)
	}
}

// without returns the items that may be delivered.
func (b *broken) without(items []*schema.Item) []*schema.Item {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.until) == 0 {
		return items
	}
	var some []*schema.Item
	held := make(map[string]bool)
	for _, it := range items {
		until, ok := b.until[it.Sequence]
		if ok && time.Now().After(until) {
			delete(b.until, it.Sequence)
			ok = false
		}
		if held[it.Source] = held[it.Source] || ok; !held[it.Source] {
			some = append(some, it)
		}
	}
	return some
}
