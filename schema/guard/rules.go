package guard

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/match"
)

// RuleOf returns the part of a hook that decides at which calls it runs.
func RuleOf(h *schema.Hook) schema.PolicyHook {
	return schema.PolicyHook{
		Hook: h.Name, Event: h.Event, Agent: h.Agent, Matcher: h.Matcher, System: h.System,
		Like: string(h.Type) + " " + h.Handler, Preset: h.Preset != "",
		Guards: guards(h), Native: needs(h, schema.NeedNative), History: needs(h, schema.NeedHistory),
	}
}

// needs reports whether the hook needs a part that not every event has.
func needs(h *schema.Hook, what string) bool { return !h.Stage() && slices.Contains(h.Needs, what) }

// guards reports whether a call that the hook matches must not pass without a verdict. Of
// the stages only gates judge.
func guards(h *schema.Hook) bool {
	return h.FailClosed && h.Mode == schema.Enforce && (!h.Stage() || h.Gates())
}

// Rules is the compiled hooks of one version. Its methods refer to a hook by its index in the
// compiled list. Several goroutines may use it.
type Rules struct {
	rules    []schema.PolicyHook
	matchers []*match.Matcher // by rule
	index    map[string]int   // numbers of the distinct agent patterns
	agents   match.Index      // finds the patterns that match an agent
	// tools has the rules for an event's tools, by the pattern of their agents.
	tools map[place]*match.Index
	// dropped has the events at which a pattern's agents override the global hooks.
	dropped map[place]bool
	// alike has the rules of users' hooks, by what they run.
	alike map[kin][]int
}

// allAgents takes the place of a pattern for rules of all agents.
const allAgents = -1

// place is an event and the agents of a pattern.
type place struct {
	pattern int
	event   schema.EventType
}

// Own is a class of agents that have the same hooks: the set of agent patterns that match them.
// Its length depends on the number of patterns, not on the number of agents.
type Own string

// ownSize is the size of one pattern's index in an [Own].
const ownSize = 4

// patterns yields the indexes of the patterns that match the agent, in increasing order.
func (o Own) patterns(yield func(int) bool) {
	for ; len(o) > 0; o = o[ownSize:] {
		if !yield(int(o[0])<<24 | int(o[1])<<16 | int(o[2])<<8 | int(o[3])) {
			return
		}
	}
}

// has reports whether the pattern with that index matches the agent.
func (o Own) has(pattern int) bool {
	for p := range o.patterns {
		if p >= pattern {
			return p == pattern
		}
	}
	return false
}

// Compile compiles rules. Its error lists all faults.
func Compile(rules []schema.PolicyHook, overrides []schema.Override) (*Rules, error) {
	r := &Rules{
		rules: rules, matchers: make([]*match.Matcher, len(rules)), index: make(map[string]int),
		tools: make(map[place]*match.Index), dropped: make(map[place]bool), alike: make(map[kin][]int),
	}
	var errs []error
	for i := range rules {
		errs = append(errs, r.compile(i), r.name(rules[i].Agent))
	}
	for _, o := range overrides {
		errs = append(errs, r.name(o.Agent))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i := range rules {
		r.sort(i)
	}
	for _, o := range overrides {
		r.dropped[place{r.pattern(o.Agent), o.Event}] = true
	}
	return r, nil
}

// compile makes a rule's matcher. For an event without tools it matches everything.
func (r *Rules) compile(i int) (err error) {
	h := &r.rules[i]
	if r.matchers[i], err = match.Compile(h.Matcher); err != nil {
		return fmt.Errorf("hook %q: matcher: %w", h.Hook, err)
	}
	if !h.Event.HasTool() {
		r.matchers[i], err = match.Compile("")
	}
	return err
}

// name adds an agent pattern.
func (r *Rules) name(agent string) error {
	if _, known := r.index[agent]; known || agent == "" {
		return nil
	}
	m, err := match.Compile(agent)
	if err != nil {
		return fmt.Errorf("agent %q: %w", agent, err)
	}
	r.agents.Add(len(r.index), m)
	r.index[agent] = len(r.index)
	return nil
}

// pattern returns the index of an agent pattern.
func (r *Rules) pattern(agent string) int {
	if agent == "" {
		return allAgents
	}
	return r.index[agent]
}

// sort puts a rule where it is looked up.
func (r *Rules) sort(i int) {
	h := &r.rules[i]
	at := place{r.pattern(h.Agent), h.Event}
	if r.tools[at] == nil {
		r.tools[at] = new(match.Index)
	}
	r.tools[at].Add(i, r.matchers[i])
	if !h.Preset {
		k := kin{h.Event, h.Like}
		r.alike[k] = append(r.alike[k], i)
	}
}

// Of returns the class of an agent.
func (r *Rules) Of(agent string) Own {
	found := r.agents.Find(agent)
	own := make([]byte, 0, ownSize*len(found))
	for _, i := range found {
		own = append(own, byte(i>>24), byte(i>>16), byte(i>>8), byte(i))
	}
	return Own(own)
}

// Asked returns the indexes of the hooks that run at an event, for agents of a class and a
// tool, in increasing order.
func (r *Rules) Asked(own Own, t schema.EventType, tool string) []int {
	all := r.about(nil, place{allAgents, t}, tool)
	for p := range own.patterns {
		all = r.about(all, place{p, t}, tool)
	}
	slices.Sort(all)
	return slices.DeleteFunc(all, func(i int) bool { return !r.Concerns(own, i) })
}

// about adds the hooks of a place that match a tool.
func (r *Rules) about(all []int, at place, tool string) []int {
	if of := r.tools[at]; of != nil {
		all = append(all, of.Find(tool)...)
	}
	return all
}

// Asks reports whether the hook with that index runs at calls of its event, for agents of a
// class and a tool.
func (r *Rules) Asks(own Own, i int, tool string) bool {
	return r.matchers[i].Match(tool) && r.applies(own, i) && !r.yields(own, i)
}

// Concerns reports whether the hook with that index runs for at least one tool.
func (r *Rules) Concerns(own Own, i int) bool { return r.applies(own, i) && !r.yields(own, i) }

// applies reports whether a hook runs for agents of own: their own hooks do, and the
// global ones that they do not override.
func (r *Rules) applies(own Own, i int) bool {
	h := &r.rules[i]
	if h.Agent != "" {
		return own.has(r.index[h.Agent])
	}
	if h.System {
		return true
	}
	for p := range own.patterns {
		if r.dropped[place{p, h.Event}] {
			return false
		}
	}
	return true
}

// yields reports whether a preset's hook yields to a user's hook with the same handler
// for the agents of own, for any tool.
func (r *Rules) yields(own Own, i int) bool {
	h := &r.rules[i]
	return h.Preset && slices.ContainsFunc(r.alike[kin{h.Event, h.Like}], func(j int) bool { return r.applies(own, j) })
}

// Guards reports whether the hook with that index guards its calls.
func (r *Rules) Guards(i int) bool { return r.rules[i].Guards }

// A Call describes a call as far as it is known.
type Call struct {
	// Agent is the agent of the call; [schema.UnknownAgent] stands for any agent.
	Agent string
	Event schema.EventType
	// Tool is the tool's name; empty at an event with a tool: any tool.
	Tool string
}

// Guard returns the first hook that guards a call, or nil.
func (r *Rules) Guard(c Call) *schema.PolicyHook {
	return r.first(c, func(h *schema.PolicyHook) bool { return h.Guards })
}

// Native returns the first hook of a call that needs the runtime's own payload, or nil.
func (r *Rules) Native(c Call) *schema.PolicyHook {
	return r.first(c, func(h *schema.PolicyHook) bool { return h.Native })
}

// History returns the first hook of a call that needs the conversation, or nil.
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
