package dispatch

import (
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// addStage puts a stage of the aggregator into a plan, if it means something at
// its event. Of several of one handler the last one counts, where it stands.
func (s *Snapshot) addStage(p *Plan, i int) {
	h := &s.Config.Hooks[i]
	same := func(j int) bool { return s.Config.Hooks[j].Handler == h.Handler }
	switch {
	case h.Mode == schema.Shadow:
		// What it would have delivered is delivered to nobody else.
	case h.Gates() && h.Event == schema.PreToolUse:
		p.Gates = append(slices.DeleteFunc(p.Gates, same), i)
	case h.Delivers() && h.Event.TakesDelivery():
		p.Deliver = append(slices.DeleteFunc(p.Deliver, same), i)
	}
}

// Stages are the stages that an agent has at an event, whatever the tool: each is
// in the plan of some tool. The plan has nothing else, and is made anew each time.
func (s *Snapshot) Stages(agent string, t schema.EventType) *Plan {
	sc, p := s.scope(agent), &Plan{}
	for i := range s.Config.Hooks {
		if h := &s.Config.Hooks[i]; h.Stage() && h.Event == t && s.rules.Concerns(sc.own, i) {
			s.addStage(p, i)
		}
	}
	return p
}

// Place puts what a stage did into a verdict, where its hook stands in
// registration order. The row and the injections get the hook's name.
func (s *Snapshot) Place(v *schema.Verdict, hook int, row schema.ExecutedHook, injections []schema.Injection) {
	row.Hook = s.Config.Hooks[hook].Name
	v.ExecutedHooks = slices.Insert(v.ExecutedHooks, placeOf(v.ExecutedHooks, func(x *schema.ExecutedHook) bool { return s.behind(x.Hook, hook) }), row)
	injections = slices.Clone(injections)
	for i := range injections {
		injections[i].Hook = row.Hook
	}
	v.Injections = slices.Insert(v.Injections, placeOf(v.Injections, func(x *schema.Injection) bool { return s.behind(x.Hook, hook) }), injections...)
}

// placeOf is the index of the first item that is behind, or where one would be.
func placeOf[T any](items []T, behind func(*T) bool) int {
	for i := range items {
		if behind(&items[i]) {
			return i
		}
	}
	return len(items)
}

// behind reports whether the hook of that name is registered after the other.
func (s *Snapshot) behind(name string, hook int) bool {
	i, ok := s.index[name]
	return ok && i > hook
}
