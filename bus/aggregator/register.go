package aggregator

import (
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// withRegistered returns a file's configuration, followed by the hooks that were registered at run
// time in the version before. A file does not remove those.
func withRegistered(file, before *schema.Config) schema.Config {
	next := *file
	next.Hooks, next.Overrides = slices.Clone(file.Hooks), slices.Clone(file.Overrides)
	for i := range before.Hooks {
		if before.Hooks[i].Registered {
			next.Hooks = place(next.Hooks, before.Hooks[i])
		}
	}
	for _, o := range before.Overrides {
		if o.Registered { // also if the file has the same override, because a later file may remove it
			next.Overrides = append(next.Overrides, o)
		}
	}
	hooksyaml.AddPresets(&next)
	return next
}

// place puts a hook at the end of its part of the order: global hooks come
// before those of agents.
func place(hooks []schema.Hook, h schema.Hook) []schema.Hook {
	at := len(hooks)
	if h.Agent == "" {
		if i := slices.IndexFunc(hooks, func(h schema.Hook) bool { return h.Agent != "" }); i >= 0 {
			at = i
		}
	}
	return slices.Insert(hooks, at, h)
}

// overridden reports whether o is among the overrides that were registered.
func overridden(all []schema.Override, o schema.Override) bool {
	return slices.ContainsFunc(all, func(x schema.Override) bool { return x.Registered && x.Agent == o.Agent && x.Event == o.Event })
}

// register returns before with the hooks and overrides of add. A hook replaces one of the same name
// that was registered for the same agent, in its place.
func register(before, add *schema.Config) (schema.Config, []string) {
	next := *before
	next.Hooks, next.Overrides = slices.Clone(before.Hooks), slices.Clone(before.Overrides)
	var names []string
	for _, h := range add.Hooks {
		h.Registered = true
		names = append(names, h.Name)
		if i := named(next.Hooks, h.Name); i >= 0 && next.Hooks[i].Preset == "" {
			next.Hooks[i] = h
			continue
		}
		next.Hooks = place(next.Hooks, h)
	}
	for _, o := range add.Overrides {
		if !overridden(next.Overrides, o) {
			o.Registered = true
			next.Overrides = append(next.Overrides, o)
		}
	}
	hooksyaml.AddPresets(&next)
	return next, names
}

// replaceable reports whether agent may register a hook of that name. It may if no hook has the
// name, if the hook belongs to a preset, or if the hook was registered for that agent.
func replaceable(cfg *schema.Config, agent, name string) bool {
	i := named(cfg.Hooks, name)
	return i < 0 || cfg.Hooks[i].Preset != "" || cfg.Hooks[i].Registered && cfg.Hooks[i].Agent == agent
}

func named(hooks []schema.Hook, name string) int {
	return slices.IndexFunc(hooks, func(h schema.Hook) bool { return h.Name == name })
}

// unregister returns before without the named hooks of agent and its overrides of these events. It
// returns an error if one of them was not registered.
func unregister(before *schema.Config, agent string, names []string, events []schema.EventType) (schema.Config, error) {
	next := *before
	for _, name := range names {
		if err := registeredFor(before, agent, name); err != nil {
			return next, err
		}
	}
	next.Hooks = slices.DeleteFunc(slices.Clone(before.Hooks), func(h schema.Hook) bool { return slices.Contains(names, h.Name) })
	next.Overrides = slices.Clone(before.Overrides)
	for _, event := range events {
		event = event.Canonical()
		i := slices.IndexFunc(next.Overrides, func(o schema.Override) bool { return o.Registered && o.Agent == agent && o.Event == event })
		if i < 0 {
			return next, &schema.ControlError{Code: schema.CodeNotFound, Message: fmt.Sprintf(
				"no override of %s is registered for %s; use one that list shows", event, whose(agent))}
		}
		next.Overrides = slices.Delete(next.Overrides, i, i+1)
	}
	hooksyaml.AddPresets(&next)
	return next, nil
}

// registeredFor returns an error if agent cannot unregister a hook.
func registeredFor(cfg *schema.Config, agent, name string) error {
	i := named(cfg.Hooks, name)
	switch {
	case i < 0 || cfg.Hooks[i].Registered && cfg.Hooks[i].Agent != agent:
		return &schema.ControlError{Code: schema.CodeNotFound, Message: fmt.Sprintf(
			"no hook %q is registered for %s; use one that list shows", name, whose(agent))}
	case cfg.Hooks[i].Preset != "":
		return &schema.ControlError{Code: schema.CodeConflict, Message: fmt.Sprintf(
			"the hook %q belongs to the preset %s; write presets: [] into the file, or a hook with its handler %s to replace it", name, cfg.Hooks[i].Preset, cfg.Hooks[i].Handler)}
	case !cfg.Hooks[i].Registered:
		return &schema.ControlError{Code: schema.CodeConflict, Message: fmt.Sprintf(
			"the hook %q comes from the configuration file; remove it there, and apply the file", name)}
	}
	return nil
}

func whose(agent string) string {
	if agent == "" {
		return "all agents"
	}
	return fmt.Sprintf("the agent %q", agent)
}
