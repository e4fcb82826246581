package aggregator

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// againShare is which part of the calls under way may be asked again: who is
// merely slow must not be given twice the work.
const againShare = 8

// takeAgain judges an event that is asked once more.
func (a *Aggregator) takeAgain(c *crew, e arrival) (judged bool) {
	e.msg.Subject = strings.TrimSuffix(e.msg.Subject, bus.AgainSuffix)
	return a.take(c, e)
}

// take judges one event, which a crew took, and answers. It reports whether it was judged,
// and not sent away.
func (a *Aggregator) take(c *crew, e arrival) (judged bool) {
	m, arrived := e.msg, e.at
	defer a.limits.leave(&e.toll)
	if !bus.IsInbox(m.Reply) {
		// Nobody to answer: it was not asked, only published, or to have this broker say something elsewhere.
		a.metrics.malformed.Inc()
		a.unheard(m.Subject, m.Reply)
		return false
	}
	now := time.Now()
	req, err := bus.ParseEventMsg(m)
	waited := now.Sub(arrived)
	if err == nil && stale(waited, &req, e.beat != nil) { // what cannot be read does not say for how long it can wait
		a.beats.end(e.beat)
		a.shedding.stale()
		return false // nobody waits for the answer any more
	}
	if !a.sure(now, &req, req.Left, &e) {
		return false // somebody else answers, or the shim's own policy does
	}
	within := a.limits.enter(&e.toll, req.Agent, now) // whatever is wrong with it
	if within && err == nil && len(m.Data) >= minLarge && !e.late && !overdue(waited, req.Left, e.beat != nil) {
		within = a.awaitLarge(c, &req, &e)
		waited = time.Since(arrived)
	}
	act := a.active.Load()
	e.span = a.traced(&req, arrived)
	defer e.span.Done()
	if err == nil && !plain(&req.Routing, req.Body) {
		switch {
		case within:
			err = consistent(&req.Routing, req.Body)
		case req.Event.Blocking() != schema.None: // else nothing is let through
			err = errUnread
		}
	}
	if err != nil {
		a.beats.end(e.beat)
		e.span.Fail("malformed event")
		a.refuse(&e, act, req.Routing, err)
		return false
	}
	a.seen(&req.Routing, req.Body)
	f := a.frozen.Load()
	if a.refusesFrozen(act, f, &req, e) {
		return false
	}
	planning := e.span.Child(trace.Internal, "plan", "")
	plan := act.Plan(req.Agent, req.Event, req.Tool)
	planning.Done()
	if plan.Empty() && !a.minds(act, plan, &req) {
		a.beats.end(e.beat)
		t, v := &closed{Routing: &req.Routing, msg: m, arrived: arrived}, &schema.Verdict{Decision: schema.Continue, ConfigVersion: act.Config.Version}
		decided(e.span, act, req.Event, v)
		a.reply(t, a.nothing(act, f))
		a.record(t, v)
		return true
	}
	asked := &dispatch.Request{
		Routing: req.Routing, Attempt: req.Attempt, Deadline: arrived.Add(req.Left), Body: req.Body, Span: e.span, Waiting: c.wait,
	}
	if !within || e.late || overdue(waited, req.Left, e.beat != nil) {
		a.beats.end(e.beat)
		a.shed(m, act, &shed{plan, asked, req.Acks, arrived, e.toll})
		return false
	}
	a.metrics.inFlight.Inc()
	if e.beat == nil {
		e.beat = a.beats.begin(m.Reply, arrived)
	}
	v := a.judged(act, plan, asked)
	if !a.staysSure(act, &req, asked, &e, &v) {
		a.metrics.inFlight.Dec()
		return false // likewise
	}
	a.remember(act, plan, asked, req.Acks, &v)
	a.overtaken(act, &req.Routing, &v)
	a.beats.end(e.beat)
	a.metrics.inFlight.Dec()
	decided(e.span, act, req.Event, &v)
	a.answer(m, act, &req.Routing, &v, arrived)
	return true
}

// beforeAgain is how long a call that was asked for the first time may wait for
// the configuration: when nobody says anything for longer it is asked again, and
// who does not know of the first time must not have run it meanwhile.
const beforeAgain = (schema.Missed - 1) * schema.BeatEvery

// sure reports whether the active configuration is known to be that, and workers can be
// reached. Where it has to be asked for, or the connection to them is not back yet, the call
// waits without a sign of life, so that it may go to another broker meanwhile.
func (a *Aggregator) sure(now time.Time, req *bus.EventRequest, limit time.Duration, e *arrival) bool {
	if a.fresh(now) {
		return true
	}
	a.beats.end(e.beat)
	e.beat = nil
	if a.unfit.Load() {
		return false
	}
	if req.Attempt < 2 {
		limit = min(limit, beforeAgain)
	}
	ctx, cancel := context.WithTimeout(a.ctx, limit)
	defer cancel()
	return a.reach.wait(ctx) == nil && (a.opt.Lease == nil || a.opt.Lease.Wait(ctx) == nil)
}

// staysSure is [Aggregator.sure] for a tool call that was judged and passes: while its hooks
// ran the lease may have lapsed, and an agent been frozen by somebody who did not wait for
// this broker.
func (a *Aggregator) staysSure(act *active, req *bus.EventRequest, asked *dispatch.Request, e *arrival, v *schema.Verdict) bool {
	now := time.Now()
	if req.Event != schema.PreToolUse || req.Event.Terminal(v.Decision) || a.leased(now) {
		return true
	}
	if !a.sure(now, req, asked.Deadline.Sub(now), e) {
		return false
	}
	a.overtaken(act, &req.Routing, v)
	return true
}

// fresh is sure without asking or waiting.
func (a *Aggregator) fresh(now time.Time) bool {
	return !a.unfit.Load() && a.reach.now() && a.leased(now)
}

// leased reports whether whoever changes something waits for this broker.
func (a *Aggregator) leased(now time.Time) bool { return a.opt.Lease == nil || a.opt.Lease.Fresh(now) }

// dispatch is the dispatcher with a net under it: whatever breaks, a guarded
// call is not let through.
func (a *Aggregator) dispatch(act *active, plan *dispatch.Plan, req *dispatch.Request) (v schema.Verdict) {
	defer func() {
		if p := recover(); p != nil {
			bus.InTrace(a.opt.Logger, req.Trace).Error("the aggregator panicked", "event_id", req.ID, "panic", p, "stack", string(debug.Stack()))
			v = schema.Verdict{HookErrors: []string{fmt.Sprintf("the aggregator failed: %v", p)}}
			if plan.Guarded {
				v.Decision, v.Reason = req.Event.Blocking(), "the aggregator failed, and a fail-closed hook guards this call"
			}
		}
	}()
	return a.dispatcher.Dispatch(a.ctx, act.Snapshot, plan, req)
}

// sendBeat says that a call is still alive. A lost connection is no reason to end
// that: it may be back when the next beat is due.
func (a *Aggregator) sendBeat(reply string) {
	_ = a.opt.Events.PublishMsg(&nats.Msg{Subject: reply, Header: nats.Header{schema.HeaderBeat: {"1"}}})
}

// errUnread: the agent of an event is over its limit, and it would take more than a glance to
// know whether the event is what its headers say.
var errUnread = errors.New("the event could not be read")

// refuse answers an event that cannot be judged as it is. One whose agent is over its limit
// costs no more than any other that is.
func (a *Aggregator) refuse(e *arrival, act *active, r schema.Routing, err error) {
	agent, event, subjErr := bus.ParseEventSubject(e.msg.Subject)
	t := &closed{Routing: &r, msg: e.msg, arrived: e.at, malformed: !errors.Is(err, errUnread), limited: e.toll.over, wait: roundUp(e.toll.wait)}
	if t.malformed {
		a.metrics.malformed.Inc()
	}
	if subjErr == nil {
		r.Agent, r.Event = agent, event
	}
	if t.limited != "" {
		t.shed, t.untold = true, !a.limits.refused(r.Agent, t.limited)
	} else if more, ok := a.malformed.line(time.Now()); ok {
		bus.InTrace(a.opt.Logger, r.Trace).Warn("malformed event", "agent", r.Agent, "event", r.Event, "subject", e.msg.Subject, "error", err, "more_before", more)
	}
	v := schema.Verdict{FreezeVersion: a.frozen.Load().version()}
	switch {
	case subjErr != nil:
		v.Decision, v.Reason, v.HookErrors = schema.Deny, subjErr.Error(), []string{subjErr.Error()}
	case !t.malformed:
		why := a.limits.refusal(agent, e.toll)
		v.HookErrors = []string{why}
		if e.toll.refuses() || act.Guards(agent, event, "") { // whatever it says, it may be about any tool
			v.Decision, v.Reason = event.Blocking(), why
		}
	default:
		v = dispatch.Malformed(event, act.Guards(agent, event, r.Tool), err)
		unread := r
		unread.Tool = "" // whatever it says, it may be about any
		a.overtaken(act, &unread, &v)
	}
	if a.tell(t, act, &v) {
		a.record(t, &v)
	}
}

// answer encodes a verdict and sends it. That a server takes less than the contract
// allows shows when it is sent: to look for it before would take the connection's
// lock once more for every verdict.
func (a *Aggregator) answer(m *nats.Msg, act *active, r *schema.Routing, v *schema.Verdict, arrived time.Time) {
	t := &closed{Routing: r, msg: m, arrived: arrived}
	if a.tell(t, act, v) {
		a.record(t, v)
	}
}

// tell encodes a verdict and sends it, and reports whether it could be encoded.
func (a *Aggregator) tell(t *closed, act *active, v *schema.Verdict) bool {
	e := a.envelopes.Take()
	defer a.envelopes.Put(e)
	data, err := a.encode(e, a.finish(v, &act.Config), t.Event, schema.MaxEvent)
	if err == nil && a.reply(t, data) {
		data, err = a.encode(e, v, t.Event, a.mostSent())
		if err == nil {
			a.reply(t, data)
		}
	}
	if err != nil {
		bus.InTrace(a.opt.Logger, t.Trace).Error("cannot encode the verdict", "event_id", t.ID, "error", err)
		return false // the shim's own policy decides
	}
	return true
}

// reply sends a verdict, and reports whether it is too large for the server.
func (a *Aggregator) reply(t *closed, data []byte) (tooLarge bool) {
	answer := bus.Message{Subject: t.msg.Reply, Data: data}
	if t.wait > 0 {
		answer.Header = bus.RetryAfter(t.wait)
	}
	err := a.answers.Publish(&answer)
	if tooLarge = errors.Is(err, nats.ErrMaxPayload); err != nil && !tooLarge {
		a.opt.Logger.Warn("cannot send the verdict", "error", err)
	}
	return tooLarge
}

// finish gives a verdict what every verdict has. By which freezes it was given says who
// looked at them.
func (a *Aggregator) finish(v *schema.Verdict, cfg *schema.Config) *schema.Verdict {
	if v.Decision == schema.None {
		v.Decision = schema.Continue
	}
	// A fabric that was made anew has another id than the one this began with.
	v.ConfigVersion, v.Fabric = cfg.Version, cmp.Or(cfg.Fabric, a.opt.Fabric)
	return v
}

// mostSent is how large a verdict may be. A server that is not ours may take less
// than the contract's largest message.
func (a *Aggregator) mostSent() int {
	return min(schema.MaxEvent, int(a.opt.Events.MaxPayload()))
}

// encode encodes a verdict in at most so many bytes. One that is larger is a
// failure of the hooks that made it so: where they could have blocked, they do.
func (a *Aggregator) encode(e *bus.Envelope, v *schema.Verdict, t schema.EventType, most int) ([]byte, error) {
	data, err := e.JSON(v)
	if err != nil || len(data) <= most {
		return data, err
	}
	why := fmt.Sprintf("the verdict has %d bytes, and at most %d can be sent; let the hooks rewrite or inject less", len(data), most)
	said := (&schema.Result{Decision: v.Decision, Reason: v.Reason}).Trimmed()
	// A stop is nothing without its value, which does not fit.
	stopped := v.Decision == schema.Stop
	if stopped {
		why += "; the hook's stop and its value were dropped; its reason: " + cmp.Or(said.Reason, "the hook gave no reason")
	}
	small := schema.Verdict{
		Decision: said.Decision, Reason: said.Reason, HookErrors: []string{why},
		ConfigVersion: v.ConfigVersion, Fabric: v.Fabric, Frozen: v.Frozen, FreezeVersion: v.FreezeVersion,
	}
	if b := t.Blocking(); b != schema.None && (!t.Terminal(v.Decision) || stopped) {
		small.Decision, small.Reason = b, why
	} else if stopped {
		small.Decision, small.Reason = schema.Continue, why
	}
	*v = small
	return e.JSON(v)
}

// record counts a verdict, logs what failed open, and puts it on the feed.
func (a *Aggregator) record(t *closed, v *schema.Verdict) {
	a.count(t, v)
	for i := range v.ExecutedHooks {
		if x := &v.ExecutedHooks[i]; x.Outcome != schema.OK {
			a.failures.note(t.Routing, x)
		}
	}
}

// count counts a verdict and puts it on the feed.
func (a *Aggregator) count(t *closed, v *schema.Verdict) {
	took := time.Since(t.arrived)
	a.metrics.verdict(t, v, took)
	a.ledger.injected(t.Routing, v)
	if !t.untold {
		a.feed.verdict(t, v, took)
	}
}

// aside counts what is not in a verdict: the answers of hooks that ran beside
// the one that ended the chain.
func (a *Aggregator) aside(req *dispatch.Request, _ *schema.Hook, part schema.Verdict) {
	for i := range part.ExecutedHooks {
		a.metrics.executed(&part.ExecutedHooks[i])
	}
	a.feed.aside(&req.Routing, &part)
}

// late counts an answer that came after its call was given up.
func (a *Aggregator) late(b *schema.Batch) {
	act := a.active.Load()
	if act == nil || act.Config.Version != b.Version {
		return
	}
	for _, i := range b.Hooks {
		if h := a.metrics.forHook(act.Config.Hooks[i].Name); h != nil {
			h.outcomes[schema.Late].Inc()
		}
	}
}

// errNoTool: nobody can say which hooks match.
var errNoTool = fmt.Errorf("the event is about a tool but does not name it; send the name in tool_name and in the header %s", schema.HeaderTool)

var (
	toolName = []byte(`"tool_name"`)
	// escaped begins a JSON escape that could spell a letter of a name.
	escaped = []byte(`\u00`)
)

// plain reports whether it shows without decoding the body that it names the tool that
// the header names: where its only mention of a tool's name is the header's, it is the
// header's; otherwise, and where escapes could hide a mention or a quote could end the
// name, it has to be read.
func plain(r *schema.Routing, body []byte) bool {
	mentions := bytes.Count(body, toolName)
	if mentions < 2 && (bytes.Contains(body, escaped) || strings.ContainsAny(r.Tool, `"\`)) {
		mentions = 2
	}
	switch mentions {
	case 0:
		return r.Tool == "" && !r.Event.HasTool()
	case 1:
		rest := bytes.TrimLeft(body[bytes.Index(body, toolName)+len(toolName):], " \t\r\n")
		if len(rest) > 1 && rest[0] == ':' {
			rest = bytes.TrimLeft(rest[1:], " \t\r\n")
			n := len(r.Tool)
			return len(rest) > n+1 && rest[0] == '"' && rest[n+1] == '"' && string(rest[1:n+1]) == r.Tool
		}
	}
	return false
}

// consistent says what is wrong if the body does not name the tool that the header
// names, which is not plain. Workers, who read it anyway, check again.
func consistent(r *schema.Routing, body []byte) error {
	_, err := schema.DecodeEvent(body, *r)
	if err == nil && r.Tool == "" && r.Event.HasTool() {
		return errNoTool
	}
	return err
}
