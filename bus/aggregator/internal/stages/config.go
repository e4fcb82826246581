package stages

import (
	"log/slog"
	"slices"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// A Config is a configuration that calls are pinned to: its plans and its stages. It never changes.
type Config struct {
	*dispatch.Snapshot

	// TerminalTools pass when all others are refused: the tools that the gates let pass, for any
	// agent, or else the default ones.
	TerminalTools []string

	all []Stage // by hook
}

// New makes the stages of a configuration. A nil maker makes none.
func New(snap *dispatch.Snapshot, maker Maker, log *slog.Logger) *Config {
	c := &Config{Snapshot: snap, all: makeAll(&snap.Config, maker, log)}
	for i := range c.all {
		t, ok := c.all[i].Gate.(Terminator)
		if !ok {
			continue
		}
		for _, tool := range t.Terminal() {
			if !slices.Contains(c.TerminalTools, tool) {
				c.TerminalTools = append(c.TerminalTools, tool)
			}
		}
	}
	if len(c.TerminalTools) == 0 {
		c.TerminalTools = schema.TerminalTools()
	}
	return c
}

// Stage returns the stage of a hook.
func (c *Config) Stage(hook int) *Stage { return &c.all[hook] }

// Hook returns a hook by its index.
func (c *Config) Hook(hook int) *schema.Hook { return &c.Config.Hooks[hook] }

// Errors returns why stages could not be made, by hook name.
func (c *Config) Errors() map[string]string {
	all := make(map[string]string)
	for i := range c.all {
		if err := c.all[i].Err; err != nil {
			all[c.Hook(i).Name] = err.Error()
		}
	}
	return all
}

// Deliverers returns the delivery stages of an agent, one for each handler. Those of PostToolUse
// come before those that the agent has only at other events.
func (c *Config) Deliverers(agent string) (hooks []int) {
	known := make(map[string]bool)
	for _, t := range append([]schema.EventType{schema.PostToolUse}, schema.EventTypes()...) {
		if !t.TakesDelivery() {
			continue
		}
		for _, hook := range c.Stages(agent, t).Deliver {
			if handler := c.Hook(hook).Handler; !known[handler] {
				known[handler] = true
				hooks = append(hooks, hook)
			}
		}
	}
	return hooks
}

// Defers reports whether some stage of the agent defers items until the agent starts again.
func (c *Config) Defers(agent string) bool {
	if c == nil || !slices.ContainsFunc(c.all, func(s Stage) bool { return s.defers }) {
		return false
	}
	return slices.ContainsFunc(c.Deliverers(agent), func(hook int) bool { return c.all[hook].defers })
}

// Observer returns the stage that observes the tool's result; nil: none.
func (c *Config) Observer(plan *dispatch.Plan, t schema.EventType, tool string) Observer {
	if t != schema.PostToolUse {
		return nil
	}
	for _, hook := range plan.Deliver {
		if o := c.all[hook].observer; o != nil && o.Observes(tool) {
			return o
		}
	}
	return nil
}

// Warns reports whether a plan has a stage that delivers the warning of a round.
func (c *Config) Warns(plan *dispatch.Plan) bool {
	return slices.ContainsFunc(plan.Deliver, func(hook int) bool {
		return c.Hook(hook).Handler == schema.RoundTimeoutPost && c.all[hook].Delivery != nil
	})
}

// WarnsAgent reports whether some plan of the agent has a stage that warns, for any tool.
func (c *Config) WarnsAgent(agent string) bool {
	return slices.ContainsFunc(schema.EventTypes(), func(t schema.EventType) bool {
		return t.TakesDelivery() && c.Warns(c.Stages(agent, t))
	})
}

// Terminal returns the tools that the agent's gate never refuses, if the gate names them.
func (c *Config) Terminal(agent string) []string {
	for _, hook := range c.Stages(agent, schema.PreToolUse).Gates {
		if t, ok := c.all[hook].Gate.(Terminator); ok {
			return t.Terminal()
		}
	}
	return nil
}
