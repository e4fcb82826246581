package aggregator

import (
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// The causes for which events are not judged, as metrics count them.
const (
	causeBusy  = "busy"  // the failure policies answered
	causeStale = "stale" // the shim had given up
)

func shedCauses() []string { return []string{causeBusy, causeStale} }

// overloaded is the sentence in the verdict for each hook that did not run.
const overloaded = "the fabric is overloaded, and the call could not be judged in time; try again later, or ask an operator to add brokers or workers"

// shed answers events by the failure policies of their hooks if they would be judged too late, or
// if their agent is over a limit. Under overload all events would otherwise wait until their shims
// have given up. Rounds still apply. Messages for the agent come with a later event, because their
// delivery takes a write.
type shed struct{ a *Aggregator }

func (s shed) pass(e *arrival) bool {
	if e.charge.over == "" && !e.overdue() {
		return true
	}
	a := s.a
	a.intake.beats.end(e.beat)
	e.asked.Shed, e.asked.Mute = overloaded, true
	if e.charge.over != "" {
		e.asked.Shed = a.intake.limits.refusal(e.req.Agent, e.charge)
	}
	e.verdict = a.judged(e.act, e.plan, e.asked)
	if e.charge.refuses() {
		unpassed(&e.verdict, e.req.Event, e.asked.Shed)
	}
	a.remember(e.act, e.plan, e.asked, e.req.Acks, &e.verdict)
	a.overtaken(e.act, &e.req.Routing, &e.verdict)
	t := e.answered()
	t.Routing, t.Shed, t.Limited, t.Wait = &e.asked.Routing, true, e.charge.over, roundUp(e.charge.wait)
	switch {
	case t.Limited != "":
		t.Unrecorded = !a.intake.limits.refused(t.Agent, t.Limited)
	case len(e.verdict.ExecutedHooks) > 0:
		a.report.TooLate(causeBusy)
	}
	decided(e.span, e.act, e.req.Event, &e.verdict)
	if a.tell(t, e.act, &e.verdict) {
		a.report.Shed(t, &e.verdict)
	}
	return false
}

// unpassed denies a call that some hook would have judged, if its agent is over a limit: an agent
// must not get past a hook by asking often, even if the hook's policy forgives failures.
func unpassed(v *schema.Verdict, t schema.EventType, why string) {
	d := t.Blocking()
	if d == schema.None || t.Terminal(v.Decision) {
		return
	}
	if slices.ContainsFunc(v.ExecutedHooks, func(h schema.ExecutedHook) bool { return h.Outcome == schema.Busy }) {
		v.Decision, v.Reason, v.AutoApprove = d, why, false
	}
}
