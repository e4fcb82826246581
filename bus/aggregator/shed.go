package aggregator

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// Where more events come than can be judged, those that wait grow older until each is
// judged just after whoever asked has given up: all of the work is done, and none of it
// for anybody. So the fabric gives up first: an event that will not be judged in half of
// its time, or has waited unheard until its shim is about to ask again, is answered by
// the failure policies of its hooks, which costs little, and one that nobody waits for
// any more is not answered at all. What is left has the time that it needs. Where they
// wait, and what tells a burst from an overload, is in lobby.go and [dispatch.Rush].

// The causes of that, as they are counted.
const (
	causeBusy  = "busy"  // the failure policies answered
	causeStale = "stale" // whoever asked had given up
)

func shedCauses() []string { return []string{causeBusy, causeStale} }

// silence is after how long without a sign of life a shim takes an aggregator for lost.
const silence = schema.Missed * schema.BeatEvery

// stale reports whether nobody waits any more for the answer to an event that has
// waited for so long. Unless it had signs of life meanwhile (told), a shim asks once more
// then, and after as long again it gives up.
func stale(waited time.Duration, req *bus.EventRequest, told bool) bool {
	patience := req.Left
	if !told {
		patience = min(patience, silence)
		if req.Attempt < 2 {
			patience = min(req.Left, 2*silence)
		}
	}
	return waited > 0 && waited >= patience
}

// overdue reports whether an event that has waited for so long is not judged any more.
func overdue(waited, left time.Duration, told bool) bool {
	return waited > left/2 || !told && waited > beforeAgain
}

// greet reports whether an event waits in the lobby. If not, it is answered at once: no
// hook is asked about it, or it is late.
func (a *Aggregator) greet(l *lobby, e *arrival) (stays bool) {
	e.late = true
	e.msg.Subject = strings.TrimSuffix(e.msg.Subject, bus.AgainSuffix)
	req, err := bus.ParseEventMsg(e.msg)
	waited := l.now.Sub(e.at)
	if err != nil || e.msg.Reply == "" || stale(waited, &req, false) || overdue(waited, req.Left, false) {
		return false
	}
	act := a.active.Load()
	plan := act.Plan(req.Agent, req.Event, req.Tool)
	if plan.Empty() && !a.minds(act, plan, &req) || l.full(len(e.msg.Data)) || !l.inTime(e.at, req.Left) {
		return false
	}
	if !a.limits.enter(&e.toll, req.Agent, l.now) {
		return false // an agent that runs away takes nobody's place here
	}
	if size := len(e.msg.Data); size >= minLarge && !a.limits.large.queue(&e.toll.large, req.Agent, size) {
		e.toll.over = limitBytes
		return false
	}
	e.late, e.until = false, e.at.Add(req.Left/2)
	e.beat = a.beats.begin(e.msg.Reply, e.at)
	return true
}

// overloaded is what is said of each hook that was not asked.
const overloaded = "the fabric is overloaded, and the call could not be judged in time; try again later, or ask an operator to add brokers or workers"

// shed is an event that is not judged any more.
type shed struct {
	plan    *dispatch.Plan
	req     *dispatch.Request
	acks    []string
	arrived time.Time
	toll    toll
}

// why is what is said of each hook that was not asked.
func (s *shed) why(l *limits) string {
	if s.toll.over != "" {
		return l.refusal(s.req.Agent, s.toll)
	}
	return overloaded
}

// shed answers an event by the failure policies of its hooks. Rounds count all the
// same; what waits for the agent comes with one of its next events, because to hand it
// over takes a write.
func (a *Aggregator) shed(m *nats.Msg, act *active, s *shed) {
	s.req.Shed, s.req.Mute = s.why(&a.limits), true
	v := a.judged(act, s.plan, s.req)
	if s.toll.refuses() {
		unpassed(&v, s.req.Event, s.req.Shed)
	}
	a.remember(act, s.plan, s.req, s.acks, &v)
	a.overtaken(act, &s.req.Routing, &v)
	t := &closed{Routing: &s.req.Routing, msg: m, arrived: s.arrived, shed: true, limited: s.toll.over, wait: roundUp(s.toll.wait)}
	switch {
	case t.limited != "":
		t.untold = !a.limits.refused(t.Agent, t.limited)
	case len(v.ExecutedHooks) > 0:
		a.shedding.busy()
	}
	decided(s.req.Span, act, s.req.Event, &v)
	if a.tell(t, act, &v) {
		a.count(t, &v)
	}
}

// unpassed refuses a call that some hook would have judged, if it is over its agent's
// limit: an agent must not get past a hook by asking for much, even if the hook's policy
// forgives what the fabric fails at.
func unpassed(v *schema.Verdict, t schema.EventType, why string) {
	d := t.Blocking()
	if d == schema.None || t.Terminal(v.Decision) {
		return
	}
	if slices.ContainsFunc(v.ExecutedHooks, func(h schema.ExecutedHook) bool { return h.Outcome == schema.Busy }) {
		v.Decision, v.Reason, v.AutoApprove = d, why, false
	}
}

// shedding counts such events. Of thousands per second it does not log each.
type shedding struct {
	count  *prometheus.CounterVec
	log    *slog.Logger
	since  atomic.Int64 // how many were not logged yet
	logged atomic.Int64 // when some were, as Unix time in nanoseconds
}

// logEvery is how often they are logged.
const logEvery = 10 * time.Second

func (s *shedding) busy()  { s.one(causeBusy) }
func (s *shedding) stale() { s.one(causeStale) }

func (s *shedding) one(cause string) {
	s.count.WithLabelValues(cause).Inc()
	s.since.Add(1)
	now, last := time.Now().UnixNano(), s.logged.Load()
	if now-last >= int64(logEvery) && s.logged.CompareAndSwap(last, now) {
		s.log.Warn("events wait too long to run their hooks, and the failure policies decide; add brokers or workers",
			"events", s.since.Swap(0), "last_cause", cause)
	}
}
