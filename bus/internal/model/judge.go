package model

import (
	"github.com/hookfabric/hookfabric/schema"
)

// A Script returns a hook's answer to an event as the hook sees it. It must return the same answer
// for the same arguments.
type Script func(h schema.Hook, input schema.Event) Answer

// Options are the circumstances of a call. The zero Options are a sound event
// whose conditions all hold.
type Options struct {
	// When evaluates the condition of a hook; nil: every condition holds.
	When func(condition string, input schema.Event) (bool, error)
	// Forged: the body names another tool than the header.
	Forged bool
	// Unreadable: the body is malformed, or too large to send.
	Unreadable bool
}

// A Call is one hook that was called, with the event as it saw it.
type Call struct {
	Hook  string
	Input schema.Event
}

// An Expectation is the required result of one call.
type Expectation struct {
	// Part is the verdict; no opinion is spelled [schema.None].
	Part
	// Event is the event's type.
	Event schema.EventType
	// Calls are the hooks that count, in order.
	Calls []Call
	// Beside has the hooks after the one that ended the chain that may have run too, because they
	// run at the same time. Their results are not in the verdict.
	Beside []Call
	// Shadow has the shadow hooks that the event concerns. The model does not say whether or when
	// they run.
	Shadow []string
}

// Judge returns the required result for an event, a configuration and a script. It trusts the
// event's type, agent and tool.
func Judge(cfg schema.Config, e schema.Event, script Script, o Options) Expectation {
	x := Expectation{Event: e.HookType}
	var hooks []schema.Hook
	for _, h := range Resolve(cfg, e.AgentID, e.HookType, e.ToolName) {
		// Shadow hooks run off the path; the verdict never waits for them.
		if h.Mode == schema.Shadow {
			x.Shadow = append(x.Shadow, h.Name)
		} else {
			hooks = append(hooks, h)
		}
	}
	switch {
	case o.Forged: // detected before any hook is called
		x.Part = unjudged(cfg, e, true)
	case len(hooks) == 0 && !Guarded(cfg, e.AgentID, e.HookType, e.ToolName): // nothing matches: answered at once
	case o.Unreadable:
		x.Part = unjudged(cfg, e, false)
	default:
		x.ask(hooks, e, script, o)
		x.Part = Feedback(x.Event, x.Part)
	}
	x.ConfigVersion = cfg.Version
	return x
}

// ask calls hooks in order. Each sees the event as the hooks before it left it. Hooks after a
// terminal result are not called.
func (x *Expectation) ask(hooks []schema.Hook, e schema.Event, script Script, o Options) {
	for i, h := range hooks {
		if !holds(h, e, o) {
			continue
		}
		p := Normalise(h, e.HookType, script(h, e))
		x.Calls = append(x.Calls, Call{h.Name, e})
		x.Part = Fold(e.HookType, x.Part, p)
		if ruleOf(e.HookType).terminal(p.Decision) {
			if h.Readonly {
				x.beside(hooks[i+1:], e, o)
			}
			return
		}
		e = rewritten(e, p)
	}
}

// beside collects the neighbours that run at the same time because all of them are readonly.
func (x *Expectation) beside(behind []schema.Hook, e schema.Event, o Options) {
	for _, h := range behind {
		if !h.Readonly {
			return
		}
		if holds(h, e, o) {
			x.Beside = append(x.Beside, Call{h.Name, e})
		}
	}
}

// holds reports whether the hook's condition is true. A condition that cannot be evaluated counts
// as true.
func holds(h schema.Hook, e schema.Event, o Options) bool {
	if h.When == "" || o.When == nil {
		return true
	}
	ok, err := o.When(h.When, e)
	return ok || err != nil
}

// unjudged returns the result of a call that no hook can judge. A guarded call is denied; another
// one is allowed, with the reason. A forged tool name is denied if a deny can prevent the tool's
// run or the reading of the prompt, regardless of the policies.
func unjudged(cfg schema.Config, e schema.Event, forged bool) Part {
	const sentence = "the event cannot be judged as it is"
	blocking := ruleOf(e.HookType).blocking
	denied := Guarded(cfg, e.AgentID, e.HookType, e.ToolName) || forged && blocking == schema.Deny
	if denied && blocking != schema.None {
		return Part{Verdict: schema.Verdict{Decision: blocking, Reason: sentence}, OwnWords: true}
	}
	return Part{Verdict: schema.Verdict{HookErrors: []string{sentence}}}
}
