package model

import (
	"github.com/hookfabric/hookfabric/schema"
)

// A Script says what asking a hook gives, by the hook and the event as the
// hook sees it. It must answer alike when asked alike.
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

// A Call is one hook asked, with the event as it saw it.
type Call struct {
	Hook  string
	Input schema.Event
}

// An Expectation is what must come out of one call.
type Expectation struct {
	// Part is the verdict; no opinion is spelled [schema.None].
	Part
	// Event is the moment that was judged.
	Event schema.EventType
	// Calls are the hooks that count, in order.
	Calls []Call
	// Beside are hooks behind the one that ended the chain which may have run
	// all the same, because they stand side by side with it. Nothing of them
	// is in the verdict.
	Beside []Call
	// Shadow are the shadow hooks that the event concerns. Whether and when
	// they run is nobody's business on this path.
	Shadow []string
}

// Judge says what must come out when an event meets a configuration and hooks
// answer by script. The event's type, agent and tool are taken as facts.
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
	case o.Forged: // found out before anybody is asked
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

// ask asks hooks one after the other: each sees the event as those before left
// it, and those behind a terminal result are not asked.
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

// beside: neighbours that are all readonly run side by side.
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

// holds: a false condition costs no dispatch; one that cannot be evaluated
// counts as true.
func holds(h schema.Hook, e schema.Event, o Options) bool {
	if h.When == "" || o.When == nil {
		return true
	}
	ok, err := o.When(h.When, e)
	return ok || err != nil
}

// unjudged: a call that no hook can judge is denied if it is guarded, else
// allowed with the reason said. A forged tool name is denied where a deny can
// keep the tool from running or the prompt from being read, whatever the
// policies.
func unjudged(cfg schema.Config, e schema.Event, forged bool) Part {
	const sentence = "the event cannot be judged as it is"
	blocking := ruleOf(e.HookType).blocking
	denied := Guarded(cfg, e.AgentID, e.HookType, e.ToolName) || forged && blocking == schema.Deny
	if denied && blocking != schema.None {
		return Part{Verdict: schema.Verdict{Decision: blocking, Reason: sentence}, OwnWords: true}
	}
	return Part{Verdict: schema.Verdict{HookErrors: []string{sentence}}}
}
