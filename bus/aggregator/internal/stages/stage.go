// Package stages makes the hooks that run in the aggregator itself, its stages, and holds them with
// the configuration that calls are judged by.
package stages

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/hookfabric/hookfabric/schema"
)

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
