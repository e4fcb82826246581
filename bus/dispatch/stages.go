package dispatch

import (
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// addStage puts a stage of the aggregator into a plan, if it applies to its event. Of
// several stages with one handler the last one counts, at its place.
func (s *Snapshot) addStage(p *Plan, i int) {
	h := &s.Config.Hooks[i]
	same := func(j int) bool { return s.Config.Hooks[j].Handler == h.Handler }
	switch {
	case h.Mode == schema.Shadow:
		// A shadow stage delivers nothing: an item can be delivered only once.
	case h.Gates() && h.Event == schema.PreToolUse:
		p.Gates = append(slices.DeleteFunc(p.Gates, same), i)
	case h.Delivers() && h.Event.TakesDelivery():
		p.Deliver = append(slices.DeleteFunc(p.Deliver, same), i)
	}
}

// Stages returns a plan with only the stages for an event of an agent, for all tools. It
// is not cached.
func (s *Snapshot) Stages(agent string, t schema.EventType) *Plan {
	sc, p := s.scope(agent), &Plan{}
	for i := range s.Config.Hooks {
		if h := &s.Config.Hooks[i]; h.Stage() && h.Event == t && s.rules.Concerns(sc.own, i) {
			s.addStage(p, i)
		}
	}
	return p
}

// Place puts the result of a stage into a verdict, at the place of its hook in
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

// placeOf returns the index of the first item for which behind is true, or len(items).
func placeOf[T any](items []T, behind func(*T) bool) int {
	for i := range items {
		if behind(&items[i]) {
			return i
		}
	}
	return len(items)
}

// behind reports whether the named hook is registered after the other.
func (s *Snapshot) behind(name string, hook int) bool {
	i, ok := s.index[name]
	return ok && i > hook
}
