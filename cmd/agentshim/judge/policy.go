package judge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/kept"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// A policy is what a judge knows of the policy of the fabric that it reached last,
// in this process or one before.
type policy struct {
	state  kept.Folder
	places []string // see [Link]

	once  sync.Once     // closes asked
	asked chan struct{} // closed when the fabric was asked for the policy, with or without success

	mu     sync.Mutex // guards what follows
	loaded bool
	fabric string       // empty: none was ever reached
	noted  bool         // the first place says so, too
	kept   *kept.Policy // nil: nothing that can be used is
	faulty error        // why not, where something is there
	rules  map[schema.EventType]*guard.Rules
	// frozen are the freezes of the policy of, the last one that was looked at.
	frozen *guard.Freezes
	of     *kept.Policy
	// seen is what a verdict came from last.
	seen origin
}

// An origin is what a verdict says of where it came from.
type origin struct {
	fabric  string
	version uint64
	freeze  uint64 // the version of what is frozen
}

// load reads what is kept, once. The caller holds the lock.
func (p *policy) load() {
	if p.loaded {
		return
	}
	p.loaded, p.kept, p.faulty = true, nil, nil
	for i, place := range p.places {
		p.noted = i == 0
		if p.fabric, p.faulty = p.state.Reached(place); p.faulty != nil {
			return
		}
		if p.fabric != "" {
			break
		}
	}
	if p.fabric == "" {
		return
	}
	if p.kept, p.faulty = p.state.Unproven(p.fabric); p.kept == nil && p.faulty == nil {
		p.faulty = fmt.Errorf("the policy of the fabric %s is gone from the folder %s", p.fabric, p.state)
	}
}

// about are the rules for an event; nil: no policy is known.
func (p *policy) about(t schema.EventType) *guard.Rules {
	if p.kept == nil {
		return nil
	}
	if r := p.rules[t]; r != nil {
		return r
	}
	var hooks []schema.PolicyHook
	for _, h := range p.kept.Hooks {
		if h.Event == t {
			hooks = append(hooks, h)
		}
	}
	var overrides []schema.Override
	for _, o := range p.kept.Overrides {
		if o.Event == t {
			overrides = append(overrides, o)
		}
	}
	rules, err := guard.Compile(hooks, overrides)
	if err != nil {
		p.kept, p.faulty = nil, fmt.Errorf("the policy of config version %d can not be used: %w", p.kept.ConfigVersion, err)
		return nil
	}
	if p.rules == nil {
		p.rules = map[schema.EventType]*guard.Rules{}
	}
	p.rules[t] = rules
	return rules
}

// maxNative is how large a payload is sent along on the chance that some hook
// needs it: the event must not become too large to be judged for it.
const maxNative = schema.MaxEvent / 4

// needsNative reports whether the runtime's payload is to go along: some hook
// needs it, or nobody knows.
func (p *policy) needsNative(e *schema.Event, size int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.load()
	rules := p.about(e.HookType)
	if rules == nil {
		return size <= maxNative
	}
	return rules.Native(callOf(e)) != nil
}

func callOf(e *schema.Event) guard.Call {
	return guard.Call{Agent: e.AgentID, Event: e.HookType, Tool: e.ToolName}
}

// A ruling is what is known about a call that nobody judged.
type ruling struct {
	fabric string
	// policy is what is known; nil: nothing, and faulty is why, if something is there.
	policy *kept.Policy
	faulty error
	// freeze refuses the call, whatever guards it; nil: none does.
	freeze *schema.Freeze
	// guard is the hook that guards the call; nil: none does.
	guard *schema.PolicyHook
}

// rule says what is known about a call.
func (p *policy) rule(e *schema.Event) ruling {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.loaded = false // another shim may know it by now
	}
	p.load()
	if p.kept != nil {
		if err := p.kept.Prove(); err != nil {
			p.kept, p.faulty = nil, err
		}
	}
	r := ruling{fabric: p.fabric}
	if rules := p.about(e.HookType); rules != nil {
		r.guard = rules.Guard(callOf(e))
	}
	r.freeze = p.freezes().Refuses(callOf(e), p.terminal())
	r.policy, r.faulty = p.kept, p.faulty
	return r
}

// freezes are those of what is kept; nil: nobody is frozen.
func (p *policy) freezes() *guard.Freezes {
	switch {
	case p.kept == nil:
		return nil
	case p.of == p.kept:
		return p.frozen
	}
	frozen, err := guard.CompileFreezes(p.kept.Freezes)
	if err != nil {
		p.kept, p.faulty = nil, fmt.Errorf("the policy of config version %d can not be used: %w", p.kept.ConfigVersion, err)
		return nil
	}
	p.frozen, p.of = frozen, p.kept
	return frozen
}

// terminal are the tools that pass a freeze.
func (p *policy) terminal() []string {
	if p.kept == nil {
		return nil
	}
	return p.kept.Terminal
}

// heard takes in where a verdict came from, and reports whether the policy is to
// be asked for: what is kept is of another version, or of another fabric.
func (p *policy) heard(v *schema.Verdict) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.load()
	if v.Fabric != "" {
		p.seen = origin{v.Fabric, v.ConfigVersion, v.FreezeVersion}
	}
	return p.stale()
}

func (p *policy) stale() bool {
	return p.seen.fabric != "" && (p.kept == nil || !p.noted || p.fabric != p.seen.fabric ||
		p.kept.ConfigVersion != p.seen.version || p.kept.FreezeVersion != p.seen.freeze)
}

// firstFor bounds how long a first verdict waits for the policy, or a process that
// ends after it.
const firstFor = time.Second

// Learn has a process that ends stay, though no longer than left, until a policy is
// known: the fabric may be gone at the next call.
func (j *Judge) Learn(ctx context.Context, left time.Duration) {
	line := j.connected()
	if j.link.State == "" || line == nil || j.policy.known() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(firstFor, left))
	defer cancel()
	j.calmly(func() { _ = j.takeOver(ctx, line) })()
}

// known reports whether there is a policy for when nobody answers.
func (p *policy) known() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.load()
	return p.kept != nil
}

// first holds a verdict back while no policy is known at all, until it was asked
// for: the fabric may be gone at the next call, and what it guards must not pass then.
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

// fetch asks for the policy and keeps it.
func (p *policy) fetch(ctx context.Context, line *client.Client) error {
	defer p.once.Do(func() { close(p.asked) })
	p.mu.Lock()
	seen, stale := p.seen, p.stale()
	p.mu.Unlock()
	if !stale {
		return nil
	}
	nonce := uuid.NewString()
	answer, err := line.Policy(ctx, nonce)
	if err != nil {
		return err
	}
	k, err := p.state.Accept(kept.Offer{Fabric: seen.fabric, URLs: p.places, Answer: answer, Nonce: nonce, Freeze: seen.freeze})
	if k == nil {
		return fmt.Errorf("the policy of the fabric %s is not taken over, and the one before stays: %w", seen.fabric, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fabric, p.noted, p.kept, p.faulty, p.rules = seen.fabric, true, k, nil, nil
	if p.seen.fabric == seen.fabric {
		p.seen.version, p.seen.freeze = k.ConfigVersion, k.FreezeVersion // a verdict of a version that is not active any more asks for nothing
	}
	if err != nil {
		return fmt.Errorf("the policy of the fabric %s can not be kept for the next shim: %w", seen.fabric, err)
	}
	return nil
}

// refused reports whether a fabric's policy was there and not believed: that is
// to be said, unlike one that did not come in time.
func refused(err error) bool {
	_, said := errors.AsType[*schema.ControlError](err)
	return !said && !errors.Is(err, kept.ErrBehind) && !errors.Is(err, client.ErrUnanswered) && !errors.Is(err, client.ErrUnreachable)
}

// decide is the verdict on a call that nobody judged, by what it was decided, and
// what else is to be said about that.
func (r *ruling) decide(q *Question, cause error) (v *schema.Verdict, by, also string) {
	v = &schema.Verdict{EventID: q.Event.EventID, HookErrors: []string{cause.Error()}}
	blocking := q.Event.HookType.Blocking()
	switch {
	case r.freeze != nil:
		v.Decision, v.Frozen = blocking, true
		v.Reason = fmt.Sprintf("%s\nWhether they were thawed since %s can not be found out: %s. %s Cause: %v", r.freeze.Refusal(q.Event.ToolName, r.policy.Terminal),
			r.policy.Since.UTC().Format(time.RFC3339), unreached(cause), remedy, cause)
		return v, fmt.Sprintf("%s were frozen when the fabric was heard of last", r.freeze.Whose()), ""
	case r.guard != nil:
		known := fmt.Sprintf("policy of config version %d, known since %s", r.policy.ConfigVersion, r.policy.Since.UTC().Format(time.RFC3339))
		reason := fmt.Sprintf("%s, and the fail-closed hook %s guards this call (%s). %s Cause: %v", unreached(cause), r.guard.Hook, known, remedy, cause)
		if v.Decision, v.Reason = blocking, reason; blocking == schema.None {
			v.HookErrors, v.Reason = append(v.HookErrors, reason), "" // it has happened already
		}
		return v, fmt.Sprintf("the hook %s guards it, %s", r.guard.Hook, known), ""
	case r.policy != nil:
		return v, fmt.Sprintf("no fail-closed hook guards it, policy of config version %d", r.policy.ConfigVersion), ""
	}
	if r.faulty != nil {
		// There was one, and nobody can say any more that it does not guard this call.
		reason := fmt.Sprintf("%s, and the policy that was known can not be used, so that every call counts as guarded: %v. %s Cause: %v",
			unreached(cause), r.faulty, remedy, cause)
		if v.Decision, v.Reason = blocking, reason; blocking == schema.None {
			v.HookErrors, v.Reason = append(v.HookErrors, reason), ""
		}
		return v, "the policy that is kept can not be used", fmt.Sprintf("%v: ", r.faulty)
	}
	if q.Unreachable == UnreachableDeny && blocking != schema.None {
		v.Decision = blocking
		v.Reason = fmt.Sprintf("nobody judged this call, and --unreachable is deny: %v. %s", cause, remedy)
	}
	return v, "--unreachable " + q.Unreachable, "no policy is known: "
}

// unreached says in a few words why nobody judged.
func unreached(cause error) string {
	if errors.Is(cause, client.ErrUnreachable) {
		return "the fabric is unreachable"
	}
	return "nobody of the fabric judged this call"
}

// remedy says what to do about it.
const remedy = "Start the broker, or ask who runs it; 'agentshim doctor' says what is wrong."
