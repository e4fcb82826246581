package hooksyaml

import (
	"iter"
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// A section is the hooks of one agent or, in the first one, of all agents.
type section struct {
	agent  string
	events []eventHooks
}

type eventHooks struct {
	event schema.EventType
	hooks []*schema.Hook
	// override is nil if the global hooks run as well.
	override *schema.Override
}

// arrange groups hooks and overrides as a file has them, in the order in which it is
// read.
func arrange(cfg *schema.Config) []section {
	agents, hooks := grouped(pointers(cfg.Hooks), func(h *schema.Hook) string { return h.Agent })
	owners, overrides := grouped(pointers(cfg.Overrides), func(o *schema.Override) string { return o.Agent })
	var sections []section
	for _, agent := range merged(owners, agents) {
		s := section{agent: agent, events: eventsOf(hooks[agent], overrides[agent])}
		if agent == "" {
			sections = slices.Insert(sections, 0, s)
		} else {
			sections = append(sections, s)
		}
	}
	return sections
}

func eventsOf(hooks []*schema.Hook, overrides []*schema.Override) []eventHooks {
	asked, byEvent := grouped(hooks, func(h *schema.Hook) schema.EventType { return h.Event })
	dropped, drops := grouped(overrides, func(o *schema.Override) schema.EventType { return o.Event })
	var events []eventHooks
	for _, t := range merged(dropped, asked) {
		e := eventHooks{event: t, hooks: byEvent[t]}
		if len(drops[t]) > 0 {
			e.override = drops[t][0]
		}
		events = append(events, e)
	}
	return events
}

// inOrder yields the hooks of all sections in the order in which they are read.
func inOrder(sections []section) iter.Seq[*schema.Hook] {
	return func(yield func(*schema.Hook) bool) {
		for _, s := range sections {
			for _, e := range s.events {
				for _, h := range e.hooks {
					if !yield(h) {
						return
					}
				}
			}
		}
	}
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// grouped groups items by key. The keys are in the order of their first items.
func grouped[K comparable, T any](items []T, key func(T) K) (keys []K, groups map[K][]T) {
	groups = map[K][]T{}
	for _, item := range items {
		k := key(item)
		if _, ok := groups[k]; !ok {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], item)
	}
	return keys, groups
}

// merged returns an order of keys that is consistent with both lists, with the keys of
// only the first one late; nil: there can be no such order.
func merged[K comparable](first, second []K) []K {
	var out []K
	done := map[K]bool{}
	for _, k := range second {
		if n := slices.Index(first, k) + 1; n > 0 {
			for _, before := range first[:n] {
				done[before] = true
			}
			out, first = append(out, first[:n]...), first[n:]
		} else if !done[k] {
			out, done[k] = append(out, k), true
		}
	}
	return append(out, first...)
}
