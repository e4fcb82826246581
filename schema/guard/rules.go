package guard

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/match"
)

// RuleOf is what of a hook decides about calls.
func RuleOf(h *schema.Hook) schema.PolicyHook {
	return schema.PolicyHook{
		Hook: h.Name, Event: h.Event, Agent: h.Agent, Matcher: h.Matcher, System: h.System,
		Like: string(h.Type) + " " + h.Handler, Preset: h.Preset != "",
		Guards: guards(h), Native: needs(h, schema.NeedNative), History: needs(h, schema.NeedHistory),
	}
}

// needs reports whether the hook is run with more than every event has.
func needs(h *schema.Hook, what string) bool { return !h.Stage() && slices.Contains(h.Needs, what) }

// guards reports whether a call that the hook matches must not pass unjudged.
// Of the stages only gates judge.
func guards(h *schema.Hook) bool {
	return h.FailClosed && h.Mode == schema.Enforce && (!h.Stage() || h.Gates())
}

// Rules are the hooks of one version, compiled, by the indexes that they were
// given with. They are safe for many goroutines.
type Rules struct {
	rules     []schema.PolicyHook
	overrides []schema.Override
	matchers  []*match.Matcher // by rule
	patterns  []agentPattern   // the distinct ways in which agents are named
	index     map[string]int   // of patterns, by their texts
}

// agentPattern is one way in which agents are named.
type agentPattern struct {
	text string
	m    *match.Matcher
}

// Own says which of the ways to name agents mean one: agents of one Own have
// the same hooks.
type Own string

// has reports whether the pattern of that index means the agent.
func (o Own) has(pattern int) bool { return o[pattern] == 1 }

// Compile prepares rules. The error names all faults.
func Compile(rules []schema.PolicyHook, overrides []schema.Override) (*Rules, error) {
	r := &Rules{rules: rules, overrides: overrides, matchers: make([]*match.Matcher, len(rules)), index: make(map[string]int)}
	var errs []error
	for i := range rules {
		var err error
		if r.matchers[i], err = match.Compile(rules[i].Matcher); err != nil {
			errs = append(errs, fmt.Errorf("hook %q: matcher: %w", rules[i].Hook, err))
		}
		errs = append(errs, r.name(rules[i].Agent))
	}
	for _, o := range overrides {
		errs = append(errs, r.name(o.Agent))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// name takes in a way in which agents are named.
func (r *Rules) name(agent string) error {
	if _, known := r.index[agent]; known || agent == "" {
		return nil
	}
	m, err := match.Compile(agent)
	if err != nil {
		return fmt.Errorf("agent %q: %w", agent, err)
	}
	r.index[agent] = len(r.patterns)
	r.patterns = append(r.patterns, agentPattern{agent, m})
	return nil
}

// Of says what an agent is among these rules.
func (r *Rules) Of(agent string) Own {
	own := make([]byte, len(r.patterns))
	for i, p := range r.patterns {
		if p.m.Match(agent) {
			own[i] = 1
		}
	}
	return Own(own)
}

// Asks reports whether the hook of that index is asked about calls of its event,
// by agents of own, about a tool.
func (r *Rules) Asks(own Own, i int, tool string) bool {
	return r.applies(own, i) && (!r.rules[i].Event.HasTool() || r.matchers[i].Match(tool)) && !r.yields(own, i)
}

// Concerns is Asks for some tool, whichever.
func (r *Rules) Concerns(own Own, i int) bool { return r.applies(own, i) && !r.yields(own, i) }

// applies reports whether a hook is asked for agents of own: their own hooks
// are, and the global ones that they do not override.
func (r *Rules) applies(own Own, i int) bool {
	h := &r.rules[i]
	if h.Agent != "" {
		return own.has(r.index[h.Agent])
	}
	if h.System {
		return true
	}
	for _, o := range r.overrides {
		if o.Event == h.Event && own.has(r.index[o.Agent]) {
			return false
		}
	}
	return true
}

// yields reports whether a hook is a preset's and somebody wrote another one of
// its handler for the agents of own, whichever tools that is about.
func (r *Rules) yields(own Own, i int) bool {
	h := &r.rules[i]
	if !h.Preset {
		return false
	}
	for j := range r.rules {
		if o := &r.rules[j]; !o.Preset && o.Event == h.Event && o.Like == h.Like && r.applies(own, j) {
			return true
		}
	}
	return false
}

// Guards reports whether the hook of that index guards what it is asked about.
func (r *Rules) Guards(i int) bool { return r.rules[i].Guards }

// A Call is what is known of a call.
type Call struct {
	// Agent is whose it is; [schema.UnknownAgent] may be anybody.
	Agent string
	Event schema.EventType
	// Tool is the tool's name; empty where the event has one: it may be any.
	Tool string
}

// Guard is the first hook that guards a call; nil: none does.
func (r *Rules) Guard(c Call) *schema.PolicyHook {
	return r.first(c, func(h *schema.PolicyHook) bool { return h.Guards })
}

// Native is the first hook that needs the runtime's own payload of a call; nil:
// none does.
func (r *Rules) Native(c Call) *schema.PolicyHook {
	return r.first(c, func(h *schema.PolicyHook) bool { return h.Native })
}

// History is the first hook that needs the conversation at a call; nil: none does.
func (r *Rules) History(c Call) *schema.PolicyHook {
	return r.first(c, func(h *schema.PolicyHook) bool { return h.History })
}

func (r *Rules) first(c Call, wanted func(*schema.PolicyHook) bool) *schema.PolicyHook {
	own := r.Of(c.Agent)
	for i := range r.rules {
		h := &r.rules[i]
		switch {
		case h.Event != c.Event || !wanted(h):
		case c.Agent == schema.UnknownAgent,
			c.Tool == "" && r.Concerns(own, i),
			c.Tool != "" && r.Asks(own, i, c.Tool):
			return h
		}
	}
	return nil
}
