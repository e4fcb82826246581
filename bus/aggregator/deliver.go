package aggregator

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// delivery is one handing over of what waits for an agent: a claim, and what the
// stages make of it.
type delivery struct {
	agg *Aggregator
	act *active
	// hooks are the stages that are asked, in order, as indexes of the configuration.
	hooks []int
	room  room
	to    schema.Receiver
	// by is the stage that chose an item, by the item's sequence.
	by     map[uint64]int
	faults []fault
}

// fault is what went wrong with a stage.
type fault struct {
	hook int
	kind schema.OutcomeKind
	what string
}

// deliver hands over with a verdict that is complete what waits for its agent,
// and acknowledges in the same write. It reports whether that was done.
func (a *Aggregator) deliver(act *active, plan *dispatch.Plan, req *dispatch.Request, acks []string, v *schema.Verdict) bool {
	q := a.opt.Memory.Queue
	if q == nil || req.Mute || !delivers(plan, req.Event) || req.Event.Blocks(v.Decision) {
		return false
	}
	room := a.room(filled(v))
	if room.content < minHanded {
		return false
	}
	ctx, cancel := a.budgeted(req.Deadline)
	defer cancel()
	round := a.round(req.Agent)
	direct := directWarning{round: round}
	if round != nil && round.SoftDue() && act.warns(plan) {
		direct.item = a.warn(ctx, act, round, req.ID)
		round = a.round(req.Agent)
	}
	brings := a.brings(&req.Routing, req.Attempt)
	if !brings && direct.item == nil {
		return false
	}
	d := &delivery{agg: a, act: act, hooks: plan.Deliver, room: room, to: schema.Receiver{Routing: req.Routing, Round: round}, by: make(map[uint64]int)}
	claim := &queue.Claim{Routing: req.Routing, Asked: req.Attempt > 1, Acks: acks, Choose: d.choose, MaxBytes: room.content}
	if len(plan.Deliver) == 0 {
		d.hooks, claim.Choose = act.deliverers(req.Agent), d.chooseAnew
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
		a.report.Ledger.Cut.Inc()
		a.report.Log.Unreachable(observe.QueueStore, err)
		d.tell(v, nil)
		return false
	}
	if brings {
		a.report.Log.Reachable(observe.QueueStore)
		a.memory.acks.note(req.Agent, acks)
		v.Acked = append(v.Acked, acks...)
	}
	made := d.made(ctx, &claimed, direct)
	d.hold(v, made)
	d.tell(v, made)
	return brings
}

// nothing is what an event that is asked once more takes along beside what it had
// taken before. The answer to the first question may have come meanwhile and be
// acknowledged, more than once: that must not count for what nobody has seen.
func nothing(*schema.Peers, []*schema.Item) []*schema.Item { return nil }

// brings reports whether a claim could bring something. What went out with the
// event before is not due, but the same again; and who asks once more may ask a
// broker that has not heard of that yet.
func (a *Aggregator) brings(r *schema.Routing, attempt int) bool {
	q := a.opt.Memory.Queue
	return attempt > 1 || q.Due(r.Agent, r.Session, r.Tool) || q.Holds(r.Agent, r.ID)
}

// choose has the stages choose of what is due: each of what those before it left.
func (d *delivery) choose(p *schema.Peers, due []*schema.Item) (all []*schema.Item) {
	clear(d.by)
	d.faults = nil
	d.to.Peers = p.Clone()
	rest := d.agg.memory.broken.without(due)
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

// delivers reports whether an event may bring something. A prompt does even if no stage
// stands there: see [delivery.chooseAnew].
func delivers(plan *dispatch.Plan, t schema.EventType) bool {
	return len(plan.Deliver) > 0 || t == schema.UserPromptSubmit
}

// chooseAnew chooses what an agent's turn is to begin with where no stage is asked: in the
// midst of the turn before, a runtime that cannot begin anew was not told of it.
func (d *delivery) chooseAnew(p *schema.Peers, due []*schema.Item) []*schema.Item {
	if !p.VoteOnly {
		return nil
	}
	return d.choose(p, slices.DeleteFunc(slices.Clone(due), func(it *schema.Item) bool { return it.Answer == nil }))
}

// chosen is what one stage chooses. One that breaks chooses nothing.
func (d *delivery) chosen(hook int, p *schema.Peers, due []*schema.Item) (items []*schema.Item) {
	st := &d.act.stages[hook]
	if st.delivery == nil || len(due) == 0 {
		if st.err != nil {
			d.fault(hook, schema.LoadError, fmt.Sprintf("its handler cannot be loaded: %v", st.err))
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
	return st.delivery.Choose(&d.to, p, due)
}

func (d *delivery) panicked(hook int, r any) {
	bus.InTrace(d.agg.opt.Logger, d.to.Trace).Error("a stage panicked", "hook", d.name(hook), "agent", d.to.Agent, "event_id", d.to.ID, "panic", r, "stack", string(debug.Stack()))
	d.fault(hook, schema.Errored, fmt.Sprintf("it panicked: %v", r))
}

func (d *delivery) fault(hook int, kind schema.OutcomeKind, what string) {
	d.faults = append(d.faults, fault{hook, kind, what})
}

func (d *delivery) name(hook int) string { return d.act.Config.Hooks[hook].Name }

// handed is what a stage made of its items.
type handed struct {
	hook int
	schema.Handout
	// items is of how many it was made; decided is what the hook makes of the turn.
	items   int
	decided schema.Decision
	took    time.Duration
}

// made has each stage render what it chose. Where one cannot, nothing at all is
// handed over: the items stay with the event, whose acknowledgement would count
// for all of them, and come again when the lease has ended. Beside what was claimed there may
// be a warning that has no place in the queue.
func (d *delivery) made(ctx context.Context, c *queue.Claimed, direct directWarning) (all []handed) {
	if c.Again {
		p := c.Peers.Clone()
		d.choose(&p, c.Items)
	}
	items := c.Items
	if direct.item != nil && d.takes(direct.item) && d.agg.bringsWarning(ctx, direct.round, d.to.ID) {
		items = append(slices.Clone(items), direct.item)
	}
	d.look(ctx, items)
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

// renderings are what the stages make of the items, and whether that is all.
func (d *delivery) renderings(chosen []*schema.Item) (all []handed, whole bool) {
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
			d.agg.memory.broken.add(items[hook])
		}
		whole = whole && ok
		all = append(all, h)
	}
	return all, whole
}

// look finds out how the agent's round is if it is to be told that its time is
// over: told by a broker that was cut off, the warning of a round before would be
// taken for one of this.
func (d *delivery) look(ctx context.Context, items []*schema.Item) {
	if slices.ContainsFunc(items, func(it *schema.Item) bool { return it.TimeLimit != nil }) {
		d.to.Round, _ = d.agg.latest(ctx, d.to.Agent, d.to.Round) // or as it is known here
	}
}

// rendered is what a stage makes of its items, and whether that can be handed over.
func (d *delivery) rendered(hook int, items []*schema.Item) (h handed, ok bool) {
	began := time.Now()
	h.hook, h.items = hook, len(items)
	defer func() {
		if r := recover(); r != nil {
			d.panicked(hook, r)
			ok = false
		}
	}()
	h.Handout = d.act.stages[hook].delivery.Render(&d.to, items)
	d.finish(&h, items)
	h.took = time.Since(began)
	if len(h.Injections) == 0 && h.Restart == nil {
		d.fault(hook, schema.Errored, fmt.Sprintf("it did not deliver %d items; they will be delivered again", len(items)))
		return h, false
	}
	return h, true
}

// finish gives what a stage made the facts that it may have left out, and drops
// what says nothing.
func (d *delivery) finish(h *handed, items []*schema.Item) {
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

// share are the items that an injection is taken to be about: its own if there
// are as many injections as items, else all.
func share(i, n int, items []*schema.Item) []*schema.Item {
	if n == len(items) {
		return items[i : i+1]
	}
	return items
}

// label says which items are in an injection.
func label(in *schema.Injection, items []*schema.Item) {
	in.Sequence = items[len(items)-1].Sequence
	if len(items) > 1 {
		in.Sequences = make([]uint64, len(items))
		for i, it := range items {
			in.Sequences[i] = it.Sequence
		}
	}
}

// hold has the agent go on instead of ending its turn, where stages say so: what
// it is handed with its last message it would never read. A retry of hooks carries
// it along as it is.
func (d *delivery) hold(v *schema.Verdict, all []handed) {
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

// tell puts what the stages made into the verdict, each at its hook's place.
func (d *delivery) tell(v *schema.Verdict, all []handed) {
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
