// Package stages makes the hooks that run in the aggregator itself, its stages, and holds them with
// the configuration that calls are judged by.
package stages

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
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

// A Delivery delivers items of the queue. Its methods run on the path of the call and must be fast.
type Delivery interface {
	// Choose returns the items of due that the hook delivers now, in order. It may change the notes
	// about peers in p.
	Choose(r *schema.Receiver, p *schema.Peers, due []*schema.Item) []*schema.Item
	// Render returns the chosen items in the form that the agent reads.
	Render(r *schema.Receiver, items []*schema.Item) schema.Handout
}

// A Gate refuses tools by the agent's round.
type Gate interface {
	// Passes reports whether a tool is one that is never refused.
	Passes(tool string) bool
	// Refuse is the refusal of a tool.
	Refuse(tool string, r *schema.Round) schema.Result
}

// An Observer is a [Delivery] that reads the results of some tools.
type Observer interface {
	// Observes reports whether the observer reads the results of a tool. The aggregator does not
	// read bodies of other events for it.
	Observes(tool string) bool
	// Observe updates the notes about peers for an event, and reports whether it changed them.
	Observe(e *schema.Event, p *schema.Peers) bool
}

// A Deferrer is a [Delivery] that may defer items until the agent starts again.
type Deferrer interface {
	// Defers reports whether it does.
	Defers() bool
}

// A Terminator is a [Gate] that can list the tools which it never refuses, for
// the warning before.
type Terminator interface {
	Terminal() []string
}

// A Maker makes the stage of a hook, a [Delivery] or a [Gate]. It returns an error if the hook's
// options are invalid.
type Maker func(h *schema.Hook) (any, error)

// A Stage is what the aggregator made of a hook. The zero Stage means that the hook is not a stage.
type Stage struct {
	Delivery Delivery
	Gate     Gate
	// Err is why there is no stage though the hook is one.
	Err error

	observer Observer
	defers   bool
}

// makeAll makes the stages of a configuration, by their hooks.
func makeAll(cfg *schema.Config, maker Maker, log *slog.Logger) []Stage {
	all := make([]Stage, len(cfg.Hooks))
	for i := range cfg.Hooks {
		if h := &cfg.Hooks[i]; h.Stage() && h.Mode == schema.Enforce {
			all[i] = makeOne(h, maker, log)
			if err := all[i].Err; err != nil {
				log.Warn("a hook cannot be loaded", "hook", h.Name, "version", cfg.Version, "error", err)
			}
		}
	}
	return all
}

func makeOne(h *schema.Hook, maker Maker, log *slog.Logger) (st Stage) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("making a stage panicked", "hook", h.Name, "panic", p, "stack", string(debug.Stack()))
			st = Stage{Err: fmt.Errorf("cannot create it: %v", p)}
		}
	}()
	if maker == nil {
		return Stage{Err: errors.New("this broker has no stages")}
	}
	made, err := maker(h)
	if err != nil {
		return Stage{Err: err}
	}
	st.Delivery, _ = made.(Delivery)
	st.observer, _ = made.(Observer)
	st.Gate, _ = made.(Gate)
	d, ok := made.(Deferrer)
	st.defers = ok && d.Defers()
	if h.Delivers() && st.Delivery == nil || h.Gates() && st.Gate == nil {
		return Stage{Err: fmt.Errorf("this release has no stage %q", h.Handler)}
	}
	return st
}
