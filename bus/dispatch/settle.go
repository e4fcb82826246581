package dispatch

import (
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// Settle turns the outcome of one hook into its part of the verdict. Illegal parts of the
// answer become errors, and the failure policy is applied. Workers use it to know where a
// chain ends, and the aggregator uses it again, because it does not trust workers.
func Settle(h *schema.Hook, o *schema.Outcome) schema.Verdict {
	var v schema.Verdict
	settle(h, o, make([]schema.ExecutedHook, 0, 1), &v)
	return v
}

// settle is Settle into the empty verdict out. The executed hook is appended to trail. It
// returns the final kind of the outcome.
func settle(h *schema.Hook, o *schema.Outcome, trail []schema.ExecutedHook, out *schema.Verdict) schema.OutcomeKind {
	s := settlement{hook: h, kind: o.Kind, out: out}
	switch s.kind {
	case "":
		s.kind = schema.OK
	case schema.Late:
		s.kind = schema.Deadline
	}
	if _, failure := failureText[s.kind]; !failure && s.kind != schema.OK {
		s.kind = schema.Errored // a kind of a newer worker
	}
	if o.Error != "" {
		s.note(o.Error)
	} else if s.kind != schema.OK {
		s.note(failureText[s.kind])
	}
	if s.kind == schema.OK || s.kind == schema.Errored {
		s.take(&o.Result)
	}
	if s.kind != schema.OK {
		s.applyPolicy()
	}
	s.strip()
	s.out.ExecutedHooks = append(trail, schema.ExecutedHook{
		Hook: h.Name, Decision: s.out.Decision, Reason: s.out.Reason, Outcome: s.kind,
		Duration: o.Took, Worker: o.Worker, Mode: h.Mode, Error: s.failure,
	})
	return s.kind
}

// Goes reports whether o is a result that lets the chain go on unchanged, as most results
// do. It is a fast check with the same answer as Settle.
func Goes(o *schema.Outcome) bool {
	if o.Kind != "" && o.Kind != schema.OK {
		return false
	}
	r := &o.Result
	switch r.Decision {
	case schema.None, schema.Continue, schema.Allow:
		return r.UpdatedInput == nil && r.UpdatedOutput == nil && r.Value == nil && len(r.Effects) == 0 &&
			len(r.Injections) == 0 && len(r.HookErrors) == 0 && len(r.Reason) <= schema.MaxReason
	}
	return false
}

// failureText describes failures that have no error text.
var failureText = map[schema.OutcomeKind]string{
	schema.Deadline:  "did not answer before its deadline",
	schema.Errored:   "failed",
	schema.NoWorker:  "no worker serves its pool",
	schema.Lost:      "its worker was lost before it answered",
	schema.Busy:      "every worker of its pool stayed busy until its deadline",
	schema.LoadError: "its handler cannot be loaded",
}

// settlement is the work of settling one outcome.
type settlement struct {
	hook *schema.Hook
	kind schema.OutcomeKind
	out  *schema.Verdict
	// failure is the first error.
	failure string
}

// note records an error without changing the outcome.
func (s *settlement) note(what string) {
	if len(what) > schema.MaxReason {
		what = strings.ToValidUTF8(what[:schema.MaxReason], "") + "…"
	}
	if s.failure == "" {
		s.failure = what
	}
	s.out.HookErrors = append(s.out.HookErrors, fmt.Sprintf("hook %q: %s", s.hook.Name, what))
}

// fault records an error that makes the outcome a failure: the failure policy decides.
func (s *settlement) fault(what string) {
	s.note(what)
	s.kind = schema.Errored
}

// take keeps the legal parts of an answer and turns the others into errors.
func (s *settlement) take(r *schema.Result) {
	if n := r.Size(); n > schema.MaxResult {
		s.fault(fmt.Sprintf("answered with %d bytes; an answer has at most %d", n, schema.MaxResult))
		r = r.Trimmed()
	}
	for _, e := range r.HookErrors {
		s.note(e)
	}
	s.decide(r)
	s.updates(r)
	s.value(r)
	s.effects(r.Effects)
	s.inject(r.Injections)
}

func (s *settlement) decide(r *schema.Result) {
	t, d := s.hook.Event, s.hook.Event.Plain(r.Decision)
	switch {
	case d == schema.None || d == schema.Continue || d == schema.Allow && !t.Permits(d):
	case !t.Permits(d):
		s.fault(fmt.Sprintf("decided %q; at %s write one of %s", clip(string(d)), t, legal(t)))
	case d == schema.Stop && !fits(r.Value, t.StopValue()):
		s.fault(fmt.Sprintf("decided stop without its value; at %s a stop needs %s", t, valueName(t.StopValue())))
	default:
		s.out.Decision, s.out.Reason = d, r.Reason
		s.out.AutoApprove = d == schema.Allow && s.hook.AutoApprove
	}
}

// applyPolicy decides for a hook that failed. A refusal or question that came with the
// failure stands, because a failure never weakens one. An allow is dropped.
func (s *settlement) applyPolicy() {
	t := s.hook.Event
	if s.out.Decision == schema.Allow {
		s.out.Decision, s.out.Reason, s.out.AutoApprove = schema.None, "", false
	}
	if !s.hook.FailClosed && s.kind != schema.LoadError {
		return
	}
	d := t.Blocking()
	if d == schema.None || t.Terminal(s.out.Decision) {
		return
	}
	why := "is fail-closed"
	if s.kind == schema.LoadError {
		why = "guards this call"
	}
	s.out.Decision, s.out.AutoApprove = d, false
	s.out.Reason = fmt.Sprintf("hook %q %s and gave no answer: %s", s.hook.Name, why, s.failure)
}

// strip removes from a result that ends its chain what only a result that goes on may
// have: rewrites, and the value unless it is a stop.
func (s *settlement) strip() {
	if !s.hook.Event.Terminal(s.out.Decision) {
		return
	}
	s.out.UpdatedInput, s.out.UpdatedOutput = nil, nil
	if s.out.Decision != schema.Stop {
		s.out.Value = nil
	}
}

func legal(t schema.EventType) string {
	var names []string
	for _, d := range t.Decisions() {
		names = append(names, string(d))
	}
	return strings.Join(names, ", ")
}

// clip shortens foreign text that an error repeats.
func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}
