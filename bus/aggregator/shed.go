package aggregator

import (
	"slices"

	"github.com/hookfabric/hookfabric/bus/aggregator/internal/intake"
	"github.com/hookfabric/hookfabric/schema"
)

// overloaded is the sentence in the verdict for each hook that did not run.
const overloaded = "the fabric is overloaded, and the call could not be judged in time; try again later, or ask an operator to add brokers or workers"

// shed answers events by the failure policies of their hooks if they would be judged too late, or
// if their agent is over a limit. Under overload all events would otherwise wait until their shims
// have given up. Rounds still apply. Messages for the agent come with a later event, because their
// delivery takes a write.
func (j *judging) shed(e *event) bool {
	over := e.Charge.Over
	if over == "" && !e.Overdue() {
		return true
	}
	j.intake.EndBeat(e.Arrival)
	e.asked.Shed, e.asked.Mute = overloaded, true
	if over != "" {
		e.asked.Shed = j.limits.Refusal(e.Req.Agent, &e.Charge)
	}
	e.verdict = j.judged(e)
	if e.Charge.Refuses() {
		unpassed(&e.verdict, e.Req.Event, e.asked.Shed)
	}
	j.remember(e)
	j.freezes.overtake(e.act, &e.Req.Routing, &e.verdict)
	t := e.Answered()
	t.Routing, t.Shed, t.Limited, t.Wait = &e.asked.Routing, true, over, e.Charge.Wait()
	switch {
	case over != "":
		t.Unrecorded = !j.limits.Refused(t.Agent, over)
	case len(e.verdict.ExecutedHooks) > 0:
		j.report.TooLate(intake.CauseBusy)
	}
	e.decided()
	j.answer(e, t)
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
