package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// hooks serves a request about the hooks that are registered at run time for
// an agent, or for all (empty).
func (c *Control) hooks(ctx context.Context, agent string, req *schema.HooksRequest) (*schema.HooksAnswer, error) {
	if c.opt.Configs == nil {
		return nil, noConfigs()
	}
	switch req.Action {
	case schema.ActionRegister:
		return c.register(ctx, agent, req)
	case schema.ActionUnregister:
		return c.unregister(ctx, agent, req)
	case schema.ActionList:
		return c.registered(ctx, agent)
	}
	return nil, badRequest("hooks has no action %q; use %s, %s or %s",
		req.Action, schema.ActionRegister, schema.ActionUnregister, schema.ActionList)
}

func (c *Control) register(ctx context.Context, agent string, req *schema.HooksRequest) (*schema.HooksAnswer, error) {
	text, err := documentOf(agent, req.Hooks)
	if err != nil {
		return nil, err
	}
	var names []string
	done, err := c.change(ctx, func(before *schema.Config) (application, error) {
		doc, err := hooksyaml.Read("request", text, c.readOptions(nil, func(name string) bool { return !replaceable(before, agent, name) }))
		if err != nil {
			return application{}, badRequest("%s", sentences(err))
		}
		app := application{force: req.Force, minor: true}
		app.cfg, names = register(before, &doc.Config)
		app.note = fmt.Sprintf("registered %s for %s", strings.Join(names, ", "), whose(agent))
		if app.cfg.Dir == "" {
			app.cfg.Dir = req.Dir
		}
		return app, nil
	})
	return hooksAnswer(done, names), err
}

// sentences returns the faults without their positions. They are in a document that the client has
// not written.
func sentences(err error) string {
	faults, ok := errors.AsType[hooksyaml.Faults](err)
	if !ok {
		return err.Error()
	}
	all := make([]string, len(faults))
	for i, f := range faults {
		all[i] = strings.TrimSuffix(f.Message+"; "+f.Hint, "; ")
	}
	return strings.Join(all, "\n")
}

// documentOf returns a hooks.yaml, as JSON, with the hooks to register.
func documentOf(agent string, hooks jsontext.Value) ([]byte, error) {
	if len(hooks) == 0 {
		return nil, badRequest(`hooks is missing; send the value of hooks: in a hooks.yaml, as JSON, such as {"PreToolUse": [{"handler": "./check.sh"}]}`)
	}
	// Strings as they are: YAML does not know all of JSON's escapes.
	if err := hooks.Format(); err != nil {
		return nil, badRequest("hooks is not JSON: %v", err)
	}
	type own struct {
		ID    string         `json:"id"`
		Hooks jsontext.Value `json:"hooks"`
	}
	doc := struct {
		Presets []string       `json:"presets"`
		Hooks   jsontext.Value `json:"hooks,omitzero"`
		Agents  []own          `json:"agents,omitzero"`
	}{Presets: []string{}} // these are the file's
	if agent == "" {
		doc.Hooks = hooks
	} else {
		doc.Agents = []own{{agent, hooks}}
	}
	return schema.Marshal(&doc)
}

func (c *Control) unregister(ctx context.Context, agent string, req *schema.HooksRequest) (*schema.HooksAnswer, error) {
	if len(req.Names) == 0 && len(req.Overrides) == 0 {
		return nil, badRequest("names and overrides are missing; send those that list shows")
	}
	done, err := c.change(ctx, func(before *schema.Config) (app application, err error) {
		app.note = fmt.Sprintf("unregistered %s for %s", strings.Join(req.Names, ", "), whose(agent))
		app.force, app.minor = true, true // to unregister a hook loads nothing
		app.cfg, err = unregister(before, agent, req.Names, req.Overrides)
		return app, err
	})
	return hooksAnswer(done, req.Names), err
}

func hooksAnswer(done applied, names []string) *schema.HooksAnswer {
	answer := &schema.HooksAnswer{Version: done.version, Changed: done.changed, Refused: done.refused, Problems: limitProblems(done.problems)}
	if !done.refused {
		answer.Names = names
	}
	return answer
}

// registered lists the hooks registered for an agent, or for all.
func (c *Control) registered(ctx context.Context, agent string) (*schema.HooksAnswer, error) {
	cfg, err := c.opt.Configs.Current(ctx)
	if err != nil {
		return nil, err
	}
	answer := &schema.HooksAnswer{Version: cfg.Version}
	for _, h := range cfg.Hooks {
		if h.Registered && h.Agent == agent {
			answer.Hooks = append(answer.Hooks, h)
		}
	}
	answer.Overrides = slices.DeleteFunc(cfg.Overrides, func(o schema.Override) bool { return !o.Registered || o.Agent != agent })
	return answer, nil
}

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
			return next, notFound("no override of %s is registered for %s; use one that list shows", event, whose(agent))
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
		return notFound("no hook %q is registered for %s; use one that list shows", name, whose(agent))
	case cfg.Hooks[i].Preset != "":
		return conflict("the hook %q belongs to the preset %s; write presets: [] into the file, or a hook with its handler %s to replace it",
			name, cfg.Hooks[i].Preset, cfg.Hooks[i].Handler)
	case !cfg.Hooks[i].Registered:
		return conflict("the hook %q comes from the configuration file; remove it there, and apply the file", name)
	}
	return nil
}

func whose(agent string) string {
	if agent == "" {
		return "all agents"
	}
	return fmt.Sprintf("the agent %q", agent)
}
