package aggregator

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/schema"
)

// sendVerdict answers an event that was judged.
type sendVerdict struct{ a *Aggregator }

func (s sendVerdict) pass(e *arrival) bool {
	s.a.overtaken(e.act, &e.req.Routing, &e.verdict)
	s.a.intake.beats.end(e.beat)
	s.a.report.Metrics.InFlight.Dec()
	decided(e.span, e.act, e.req.Event, &e.verdict)
	s.a.answer(e)
	e.judged = true
	return false
}

// replies sends verdicts.
type replies struct {
	outlet    *bus.Publisher
	envelopes bus.Envelopes
}

// answer sends the verdict of an event, and records it.
func (a *Aggregator) answer(e *arrival) {
	t := e.answered()
	if a.tell(t, e.act, &e.verdict) {
		a.report.Verdict(t, &e.verdict)
	}
}

// tell encodes a verdict and sends it, and reports whether it could be encoded. A server may accept
// less than the contract allows, which shows when the verdict is sent. To check before would take
// the connection's lock once more for each verdict.
func (a *Aggregator) tell(t *observe.Answered, act *active, v *schema.Verdict) bool {
	e := a.replies.envelopes.Take()
	defer a.replies.envelopes.Put(e)
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
func (a *Aggregator) reply(t *observe.Answered, data []byte) (tooLarge bool) {
	answer := bus.Message{Subject: t.Msg.Reply, Data: data}
	if t.Wait > 0 {
		answer.Header = bus.RetryAfter(t.Wait)
	}
	err := a.replies.outlet.Publish(&answer)
	if tooLarge = errors.Is(err, nats.ErrMaxPayload); err != nil && !tooLarge {
		a.opt.Logger.Warn("cannot send the verdict", "error", err)
	}
	return tooLarge
}

// finish sets the fields that every verdict has. The version of the freezes is set by the code that
// checked them.
func (a *Aggregator) finish(v *schema.Verdict, cfg *schema.Config) *schema.Verdict {
	if v.Decision == schema.None {
		v.Decision = schema.Continue
	}
	// A fabric that was created again has a new id, which differs from the one at this broker's
	// start.
	v.ConfigVersion, v.Fabric = cfg.Version, cmp.Or(cfg.Fabric, a.opt.Fabric)
	return v
}

// mostSent returns the largest size of a verdict. An external server may accept less than the
// contract's largest message.
func (a *Aggregator) mostSent() int {
	return min(schema.MaxEvent, int(a.opt.Events.MaxPayload()))
}

// encode encodes a verdict within a limit in bytes. A larger verdict counts as a failure of the
// hooks that enlarged it: if they could have blocked, the verdict blocks.
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
