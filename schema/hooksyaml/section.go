package hooksyaml

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

// relatives are other runtimes' names of our events.
var relatives = map[string]schema.EventType{
	"PostToolUseFailure": schema.ToolError,
	"SubagentStop":       schema.BeforeFinalResponse,
	"BeforeTool":         schema.PreToolUse,
	"AfterTool":          schema.PostToolUse,
	"BeforeModel":        schema.BeforeLLMCall,
	"AfterModel":         schema.AfterLLMCall,
}

func eventNamed(s string) (schema.EventType, bool) {
	t := schema.EventType(s).Canonical()
	return t, t.Known()
}

func isEvent(s string) bool {
	_, ok := eventNamed(s)
	return ok
}

func eventNames() []string {
	var names []string
	for _, t := range schema.EventTypes() {
		names = append(names, string(t))
	}
	return names
}

// event reads the name of an event. It is empty after a fault, and the hooks of the event
// are then checked as far as possible.
func (r *reader) event(n *yaml.Node, name string) schema.EventType {
	if t, ok := eventNamed(name); ok {
		return t
	}
	hint := "write one of " + words(eventNames())
	near := nearest(name, eventNames())
	if t, ok := relatives[name]; ok {
		near = string(t)
	}
	if near != "" {
		hint = "did you mean " + quote(near) + "?"
	}
	r.fault(n, fmt.Sprintf("unknown event %s", quote(name)), hint)
	return ""
}

// section reads the hooks of one agent or, without one, of all agents: events with their
// hooks, or a flat list of hooks that name their event.
func (r *reader) section(e entry, agent string) {
	switch {
	case e.isNull():
	case e.value.Kind == yaml.SequenceNode:
		for _, n := range e.value.Content {
			r.hook(deref(n), place{agent: agent, flat: true})
		}
	default:
		r.nested(e, agent)
	}
}

func (r *reader) nested(e entry, agent string) {
	entries, _ := r.mapping(e.value, "hooks", "write an event such as PreToolUse: and a list of hooks below it")
	lines := map[schema.EventType]int{}
	for _, e := range entries {
		if e.key == "override" {
			r.fault(e.at, "override is beside the events, where it has no effect", "write it inside of one: PreToolUse: {override: true, hooks: [...]}")
			continue
		}
		t := r.event(e.at, e.key)
		if line, ok := lines[t]; ok && t != "" {
			r.fault(e.at, fmt.Sprintf("the event %s appears twice; it is already on line %d under its other name", t, line), "keep one of them")
		}
		lines[t] = e.at.Line
		r.eventHooks(e, place{agent: agent, event: t})
	}
}

// eventHooks reads the hooks of one event: a list, or a mapping that may override the
// global ones.
func (r *reader) eventHooks(e entry, p place) {
	switch e.value.Kind {
	case yaml.SequenceNode:
		for _, n := range e.value.Content {
			r.hook(deref(n), p)
		}
	case yaml.MappingNode:
		r.override(e, p)
	default:
		if !e.isNull() {
			r.fault(e.value, fmt.Sprintf("%s is %s; it must be a list of hooks", clip(e.key), describe(e.value)), "write - handler: below it")
		}
	}
}

func (r *reader) override(e entry, p place) {
	known := []string{"override", "hooks"}
	entries, _ := r.mapping(e.value, e.key, "")
	for _, inner := range entries {
		switch {
		case inner.key == "override":
			if yes := r.flag(inner); yes && p.agent == "" {
				r.fault(inner.value, "override is in the global hooks, but only agents can override", "remove it, or write it below the agent")
			} else if yes {
				r.config.Overrides = append(r.config.Overrides, schema.Override{Agent: p.agent, Event: p.event})
			}
		case inner.key == "hooks" && inner.value.Kind == yaml.MappingNode:
			r.fault(inner.value, "hooks is a mapping; it must be a list of hooks", "begin each of them with -")
		case inner.key == "hooks":
			r.eventHooks(inner, p)
		case slices.Contains(hookKeys, inner.key):
			r.fault(inner.at, fmt.Sprintf("%s is a mapping; its hooks must be a list", clip(e.key)), "begin each hook with -")
			return
		default:
			r.foreign([]entry{inner}, clip(e.key), known, false)
		}
	}
}
