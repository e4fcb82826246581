package aggregator

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/schema"
)

// sendVerdict answers an event that was judged.
func (j *judging) sendVerdict(e *event) bool {
	j.freezes.overtake(e.act, &e.Req.Routing, &e.verdict)
	j.intake.EndBeat(e.Arrival)
	j.report.Metrics.InFlight.Dec()
	e.decided()
	j.answer(e, e.Answered())
	e.Judged = true
	return false
}

// answer sends the verdict of an event, and records it.
func (j *judging) answer(e *event, t *observe.Answered) {
	if !j.replies.send(t, e.act, &e.verdict) {
		return
	}
	if t.Shed && !t.Malformed {
		j.report.Shed(t, &e.verdict)
		return
	}
	j.report.Verdict(t, &e.verdict)
}

// replies sends verdicts.
type replies struct {
	conn      *nats.Conn
	fabric    string
	log       *slog.Logger
	outlet    *bus.Publisher
	envelopes bus.Envelopes
	empty     atomic.Pointer[emptyVerdict]
}

// An emptyVerdict is the encoded verdict of a call that no hook matches and no freeze denies.
type emptyVerdict struct {
	act    *stages.Config
	frozen *frozen
	data   []byte
}

func newReplies(conn *nats.Conn, fabric string, log *slog.Logger) *replies {
	return &replies{conn: conn, fabric: fabric, log: log, outlet: bus.NewPublisher(conn)}
}

// send encodes a verdict and sends it, and reports whether it could be encoded. A server may accept
// less than the contract allows, which shows when the verdict is sent. To check before would take
// the connection's lock once more for each verdict.
func (r *replies) send(t *observe.Answered, act *stages.Config, v *schema.Verdict) bool {
	e := r.envelopes.Take()
	defer r.envelopes.Put(e)
	data, err := encode(e, r.finish(v, act), t.Event, schema.MaxEvent)
	if err == nil && r.publish(t, data) {
		if data, err = encode(e, v, t.Event, r.maxVerdict()); err == nil {
			r.publish(t, data)
		}
	}
	if err != nil {
		bus.InTrace(r.log, t.Trace).Error("cannot encode the verdict", "event_id", t.ID, "error", err)
		return false // the shim's own policy decides
	}
	return true
}

// sendEmpty sends the verdict of a call that no hook matches, and that the freezes let pass. Most
// calls get it, so it is encoded once.
func (r *replies) sendEmpty(t *observe.Answered, act *stages.Config, f *frozen) {
	known := r.empty.Load()
	if known == nil || known.act != act || known.frozen != f {
		data, err := schema.Marshal(r.finish(&schema.Verdict{FreezeVersion: f.version()}, act))
		if err != nil {
			r.log.Error("cannot encode the empty verdict", "error", err)
			return // the shim's own policy decides
		}
		known = &emptyVerdict{act, f, data}
		r.empty.Store(known)
	}
	r.publish(t, known.data)
}

// publish sends an encoded verdict, and reports whether it is too large for the server.
func (r *replies) publish(t *observe.Answered, data []byte) (tooLarge bool) {
	answer := bus.Message{Subject: t.Msg.Reply, Data: data}
	if t.Wait > 0 {
		answer.Header = bus.RetryAfter(t.Wait)
	}
	err := r.outlet.Publish(&answer)
	if tooLarge = errors.Is(err, nats.ErrMaxPayload); err != nil && !tooLarge {
		r.log.Warn("cannot send the verdict", "error", err)
	}
	return tooLarge
}

// finish sets the fields that every verdict has. The version of the freezes is set by the code that
// checked them.
func (r *replies) finish(v *schema.Verdict, act *stages.Config) *schema.Verdict {
	if v.Decision == schema.None {
		v.Decision = schema.Continue
	}
	// A fabric that was created again has a new id, which differs from the one at this broker's
	// start.
	v.ConfigVersion, v.Fabric = act.Config.Version, cmp.Or(act.Config.Fabric, r.fabric)
	return v
}

// maxVerdict returns the largest size of a verdict. An external server may accept less than the
// contract's largest message.
func (r *replies) maxVerdict() int { return min(schema.MaxEvent, int(r.conn.MaxPayload())) }

// encode encodes a verdict within a limit in bytes. A larger verdict counts as a failure of the
// hooks that enlarged it: if they could have blocked, the verdict blocks.
func encode(e *bus.Envelope, v *schema.Verdict, t schema.EventType, most int) ([]byte, error) {
	data, err := e.JSON(v)
	if err != nil || len(data) <= most {
		return data, err
	}
	why := fmt.Sprintf("the verdict has %d bytes, and at most %d can be sent; let the hooks rewrite or inject less", len(data), most)
	trimmed := (&schema.Result{Decision: v.Decision, Reason: v.Reason}).Trimmed()
	// A stop is nothing without its value, which does not fit.
	stopped := v.Decision == schema.Stop
	if stopped {
		why += "; the hook's stop and its value were dropped; its reason: " + cmp.Or(trimmed.Reason, "the hook gave no reason")
	}
	small := schema.Verdict{
		Decision: trimmed.Decision, Reason: trimmed.Reason, HookErrors: []string{why},
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
