package decide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// A policy has those of all fabrics that ever answered at the judge's URLs. It denies what one denies.
type policy struct {
	state shimstate.Folder
	urls  []string // see [Link]

	once  sync.Once     // closes asked
	asked chan struct{} // closed after the first request for the policy, with or without success

	mu     sync.Mutex // guards what follows
	loaded bool
	listed []string  // the stored fabrics of the URLs
	all    []*fabric // the policy of each, in that order, and policies that could not be stored
	faulty error     // why some fabrics may be unknown
	seen   Origin    // the origin of the last verdict
}

// An Origin identifies the fabric, and the versions of its policy and freezes, of a verdict.
type Origin struct {
	fabric          string
	version, freeze uint64
}

// OriginOf returns the origin of a verdict.
func OriginOf(v *schema.Verdict) Origin { return Origin{v.Fabric, v.ConfigVersion, v.FreezeVersion} }

// list returns the fabrics that answered at the URLs, and how many of them answered at the first one.
func (p *policy) list() (all []string, first int, err error) {
	for i, url := range p.urls {
		fabrics, failed := p.state.Fabrics(url)
		err = errors.Join(err, failed)
		for _, id := range fabrics {
			if !slices.Contains(all, id) {
				all = append(all, id)
			}
		}
		if i == 0 {
			first = len(all)
		}
	}
	return all, first, err
}

// load reads the stored policies, once. The caller holds the lock.
func (p *policy) load() {
	if p.loaded {
		return
	}
	p.loaded = true
	p.all = slices.DeleteFunc(p.all, func(f *fabric) bool { return !f.memory })
	all, first, err := p.list()
	p.listed, p.faulty = all, err
	for i, id := range all {
		if p.find(id) != nil {
			continue
		}
		f := &fabric{id: id, noted: i < first}
		if f.kept, f.faulty = p.state.UnverifiedPolicy(id); f.kept == nil && f.faulty == nil {
			f.faulty = fmt.Errorf("the stored policy of the fabric %s is missing in the folder %s", id, p.state)
		}
		p.all = append(p.all, f)
	}
}

// again reads the stored policies again if they may have changed. The caller holds the lock.
func (p *policy) again() {
	unusable := func(f *fabric) bool { return f.kept == nil }
	if all, _, _ := p.list(); p.faulty != nil || len(p.all) == 0 || slices.ContainsFunc(p.all, unusable) || !slices.Equal(all, p.listed) {
		p.loaded = false
	}
	p.load()
}

// find returns the record of a fabric; nil: there is no such record. The caller holds the lock.
func (p *policy) find(id string) *fabric {
	for _, f := range p.all {
		if f.id == id {
			return f
		}
	}
	return nil
}

// maxNative limits a payload of which the judge does not know whether some hook needs it.
const maxNative = schema.MaxEvent / 4

// needsNative reports whether some hook needs the runtime's payload, or no policy tells and it is small.
func (p *policy) needsNative(e *schema.Event, size int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.load()
	unknown := len(p.all) == 0
	for _, f := range p.all {
		rules := f.about(e.HookType)
		if rules != nil && rules.Native(callOf(e)) != nil {
			return true
		}
		unknown = unknown || rules == nil
	}
	return unknown && size <= maxNative
}

func callOf(e *schema.Event) guard.Call {
	return guard.Call{Agent: e.AgentID, Event: e.HookType, Tool: e.ToolName}
}

func (p *policy) rule(e *schema.Event) ruling {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again()
	r := ruling{faulty: p.faulty}
	for _, f := range p.all {
		r.fabrics = append(r.fabrics, f.id)
		freeze, guarding := f.refuses(e)
		if r.freeze == nil && (freeze != nil || r.guard == nil && f.kept != nil) {
			r.freeze, r.guard, r.policy = freeze, guarding, f.kept
		}
		r.faulty = errors.Join(r.faulty, f.faulty)
	}
	if r.policy == nil && r.faulty == nil {
		r.faulty = p.state.Usable() // without a usable state folder, an earlier policy may have been lost
	}
	return r
}

// heard notes the origin of a verdict, and reports whether the stored policy is not the one of it.
func (p *policy) heard(v *schema.Verdict) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.load()
	if v.Fabric != "" {
		p.seen = OriginOf(v)
	}
	return p.stale()
}

func (p *policy) stale() bool {
	if p.seen.fabric == "" {
		return false
	}
	f := p.find(p.seen.fabric)
	return f == nil || f.kept == nil || !f.noted || f.kept.ConfigVersion != p.seen.version || f.kept.FreezeVersion != p.seen.freeze
}

func (p *policy) known() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.load()
	return slices.ContainsFunc(p.all, func(f *fabric) bool { return f.kept != nil })
}

// first delays a verdict until the judge has requested the first policy: the fabric may be gone at the next
// call, and guarded calls must not pass then.
func (p *policy) first(ctx context.Context) {
	if p.known() {
		return
	}
	timer := time.NewTimer(firstFor)
	defer timer.Stop()
	select {
	case <-p.asked:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// fetch requests the policy and stores it. news is a message for people; empty: there is no message.
func (p *policy) fetch(ctx context.Context, line *client.Client) (news string, err error) {
	defer p.once.Do(func() { close(p.asked) })
	p.mu.Lock()
	p.again()
	seen, stale := p.seen, p.stale()
	p.mu.Unlock()
	if !stale {
		return "", nil
	}
	nonce := uuid.NewString()
	answer, err := line.Policy(ctx, nonce)
	if err != nil {
		return "", err
	}
	k, err := p.state.Accept(shimstate.Offer{Fabric: seen.fabric, URLs: p.urls, Answer: answer, Nonce: nonce, Freeze: seen.freeze})
	if k == nil {
		return "", fmt.Errorf("rejected the new policy of the fabric %s, the earlier one stays in force: %w", seen.fabric, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	news = p.take(seen.fabric, k, err != nil)
	if p.seen.fabric == seen.fabric {
		p.seen.version, p.seen.freeze = k.ConfigVersion, k.FreezeVersion // so that a verdict of an older version does not trigger another request
	}
	if err != nil {
		return news, fmt.Errorf("storing the policy of the fabric %s for the next agentshim process: %w", seen.fabric, err)
	}
	return news, nil
}

// take uses a new policy. memory: it could not be stored. The caller holds the lock.
func (p *policy) take(id string, k *shimstate.Policy, memory bool) (news string) {
	f := p.find(id)
	if f == nil {
		f = &fabric{id: id}
		p.all = append(p.all, f)
		if n := len(p.all); n > 1 {
			news = fmt.Sprintf("the fabric %s answers at the URL where %s answered before; the guards of both count until 'agentshim policy reset'", id, p.all[n-2].id)
		}
	}
	f.kept, f.faulty, f.rules, f.frozen, f.noted, f.memory = k, nil, nil, nil, true, memory || p.state == ""
	if !memory {
		p.listed, _, p.faulty = p.list()
	}
	return news
}

// A fabric is the last known policy of one fabric, or the reason why it is unusable.
type fabric struct {
	id     string
	noted  bool              // the list of the first URL contains it
	memory bool              // it could not be stored, and only this process knows it
	kept   *shimstate.Policy // nil: there is no usable policy
	faulty error             // why there is no usable policy
	rules  map[schema.EventType]*guard.Rules
	frozen *guard.Freezes // nil: not compiled yet, or none
}

// about returns the rules for an event; nil: no policy is known.
func (f *fabric) about(t schema.EventType) *guard.Rules {
	if f.kept == nil {
		return nil
	}
	if r := f.rules[t]; r != nil {
		return r
	}
	var hooks []schema.PolicyHook
	for _, h := range f.kept.Hooks {
		if h.Event == t {
			hooks = append(hooks, h)
		}
	}
	var overrides []schema.Override
	for _, o := range f.kept.Overrides {
		if o.Event == t {
			overrides = append(overrides, o)
		}
	}
	rules, err := guard.Compile(hooks, overrides)
	if err != nil {
		f.unusable(err)
		return nil
	}
	if f.rules == nil {
		f.rules = map[schema.EventType]*guard.Rules{}
	}
	f.rules[t] = rules
	return rules
}

func (f *fabric) unusable(err error) {
	f.kept, f.faulty = nil, fmt.Errorf("the policy of config version %d is unusable: %w", f.kept.ConfigVersion, err)
}

// refuses returns the freeze and the fail-closed hook of the policy that refuse a call; nil: there is none.
func (f *fabric) refuses(e *schema.Event) (freeze *schema.Freeze, hook *schema.PolicyHook) {
	if f.kept == nil {
		return nil, nil
	}
	if err := f.kept.Verify(); err != nil {
		f.kept, f.faulty = nil, err
		return nil, nil
	}
	if rules := f.about(e.HookType); rules != nil {
		hook = rules.Guard(callOf(e))
	}
	if f.kept == nil {
		return nil, hook
	}
	if f.frozen == nil {
		frozen, err := guard.CompileFreezes(f.kept.Freezes)
		if err != nil {
			f.unusable(err)
			return nil, hook
		}
		f.frozen = frozen
	}
	return f.frozen.Refuses(callOf(e), f.kept.Terminal), hook
}

// A ruling is what the policies say about a call without a verdict.
type ruling struct {
	cause   error    // why there is no verdict
	fabrics []string // the ids of all known fabrics
	// policy refuses the call, or else is the last one; nil: none. faulty is why one cannot be used.
	policy *shimstate.Policy
	faulty error
	freeze *schema.Freeze     // refuses the call, whether a hook guards it or not; nil: no freeze does
	guard  *schema.PolicyHook // the fail-closed hook that guards the call; nil: no hook does
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

// An unnamedError reports a question without an agent under credentials for named agents.
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

func (r *ruling) remedy() string {
	const start = "Start the broker, or ask its operator to; 'agentshim doctor' shows what is wrong."
	if len(r.fabrics) < 2 {
		return start
	}
	return start + fmt.Sprintf(" The guards of %d fabrics count here, because all of them answered at this URL; if you replaced some of them, 'agentshim policy reset' forgets them.", len(r.fabrics))
}
