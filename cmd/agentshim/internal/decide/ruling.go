package decide

import (
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

// A ruling is what the policies say about a call without a verdict.
type ruling struct {
	cause error // why there is no verdict
	// fabrics are the ids of all known fabrics.
	fabrics []string
	// policy refuses the call, or else is the last one; nil: none. faulty is why one cannot be used.
	policy *shimstate.Policy
	faulty error
	// freeze refuses the call, whether a hook guards it or not; nil: no freeze does.
	freeze *schema.Freeze
	// guard is the fail-closed hook that guards the call; nil: no hook does.
	guard *schema.PolicyHook
}

// decide returns the verdict on an unjudged call. by names its basis; also is a remark for the message.
func (r *ruling) decide(q *Question, cause error) (v *schema.Verdict, by, also string) {
	v = &schema.Verdict{EventID: q.Event.EventID, HookErrors: []string{cause.Error()}}
	blocking := q.Event.HookType.Blocking()
	refuse := func(format string, args ...any) {
		v.Decision, v.Reason = blocking, fmt.Sprintf(format, args...)
		if blocking == schema.None { // the call has already happened
			v.HookErrors, v.Reason = append(v.HookErrors, v.Reason), ""
		}
	}
	remedy := r.remedy()
	switch {
	case notAccepted(cause):
		refuse("%s, so no hook judged this call. This is not an outage: an operator must fix the credentials or certificates. Cause: %v", unreached(cause), cause)
		return v, unreached(cause), ""
	case r.freeze != nil:
		v.Decision, v.Frozen = blocking, true
		v.Reason = fmt.Sprintf("%s\nagentshim cannot check whether an operator thawed them after %s: %s. %s Cause: %v", r.freeze.Refusal(q.Event.ToolName, r.policy.Terminal),
			r.policy.Since.UTC().Format(time.RFC3339), unreached(cause), remedy, cause)
		return v, fmt.Sprintf("%s were frozen in the last known policy", r.freeze.Whose()), ""
	case r.guard != nil:
		known := fmt.Sprintf("policy of config version %d, known since %s", r.policy.ConfigVersion, r.policy.Since.UTC().Format(time.RFC3339))
		refuse("%s, and the fail-closed hook %s guards this call (%s). %s Cause: %v", unreached(cause), r.guard.Hook, known, remedy, cause)
		return v, fmt.Sprintf("the hook %s guards it, %s", r.guard.Hook, known), ""
	case r.policy != nil && r.faulty == nil:
		return v, fmt.Sprintf("no fail-closed hook guards it, policy of config version %d", r.policy.ConfigVersion), ""
	case r.faulty != nil: // there was a policy, and it may have guarded this call
		what := "the stored policy is unusable"
		if errors.Is(r.faulty, shimstate.ErrNowhere) {
			what = "agentshim cannot store a policy"
		}
		refuse("%s, and %s, so agentshim treats every call as guarded: %v. %s Cause: %v", unreached(cause), what, r.faulty, remedy, cause)
		return v, what, fmt.Sprintf("%v: ", r.faulty)
	case q.Unreachable == UnreachableDeny && blocking != schema.None:
		refuse("the fabric did not judge this call, and --unreachable is deny: %v. %s", cause, remedy)
	}
	return v, "--unreachable " + q.Unreachable, "no policy is known: "
}

// An unnamedError reports that the bus denied a question without an agent: the credentials are for named
// agents.
type unnamedError struct{ error }

func (e unnamedError) Error() string {
	return "the event names no agent that can be asked about, and the credentials of this shim are for named agents only; " +
		"have the runtime send one JSON object that names its agent or its session, or name the agent with --agent, or with ?agent= in the URL"
}

func (e unnamedError) Unwrap() error { return e.error }

// unreached returns in a few words why the fabric did not judge the call.
func unreached(cause error) string {
	if _, ok := errors.AsType[unnamedError](cause); ok {
		return "the event cannot be read, or names no agent"
	}
	if notAccepted(cause) {
		return "the fabric and this agent do not accept each other's credentials or certificates"
	}
	if errors.Is(cause, client.ErrUnreachable) {
		return "the fabric is unreachable"
	}
	return "the fabric did not judge this call"
}

// notAccepted reports whether credentials or certificates are the cause. That is no outage, so no call passes:
// an agent could else evade all hooks and freezes under another name.
func notAccepted(cause error) bool {
	return errors.Is(cause, client.ErrDenied) || errors.Is(cause, bus.ErrRefused)
}

// remedy returns what the operator can do about it.
func (r *ruling) remedy() string {
	const start = "Start the broker, or ask its operator to; 'agentshim doctor' shows what is wrong."
	if len(r.fabrics) < 2 {
		return start
	}
	return start + fmt.Sprintf(" The guards of %d fabrics count here, because all of them answered at this URL; if you replaced some of them, 'agentshim policy reset' forgets them.", len(r.fabrics))
}
