package aggregator

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/hookfabric/hookfabric/schema"
)

// A Stage is a hook that runs in the aggregator itself: a [Delivery] or a [Gate].
type Stage any

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

// Stages makes the stage of a hook, or returns an error if its options are invalid.
type Stages func(h *schema.Hook) (Stage, error)

// staged is what the aggregator made of a hook. The zero staged means that the hook is not a stage.
type staged struct {
	delivery Delivery
	observer Observer
	gate     Gate
	defers   bool
	// err is why there is no stage though the hook is one.
	err error
}

// makeStages makes the stages of a configuration, by their hooks.
func (a *Aggregator) makeStages(cfg *schema.Config) []staged {
	all := make([]staged, len(cfg.Hooks))
	for i := range cfg.Hooks {
		if h := &cfg.Hooks[i]; h.Stage() && h.Mode == schema.Enforce {
			all[i] = a.makeStage(h)
			if err := all[i].err; err != nil {
				a.opt.Logger.Warn("a hook cannot be loaded", "hook", h.Name, "version", cfg.Version, "error", err)
			}
		}
	}
	return all
}

func (a *Aggregator) makeStage(h *schema.Hook) (st staged) {
	defer func() {
		if p := recover(); p != nil {
			a.opt.Logger.Error("making a stage panicked", "hook", h.Name, "panic", p, "stack", string(debug.Stack()))
			st = staged{err: fmt.Errorf("cannot create it: %v", p)}
		}
	}()
	if a.opt.Stages == nil {
		return staged{err: errors.New("this broker has no stages")}
	}
	made, err := a.opt.Stages(h)
	if err != nil {
		return staged{err: err}
	}
	st.delivery, _ = made.(Delivery)
	st.observer, _ = made.(Observer)
	st.gate, _ = made.(Gate)
	d, ok := made.(Deferrer)
	st.defers = ok && d.Defers()
	if h.Delivers() && st.delivery == nil || h.Gates() && st.gate == nil {
		return staged{err: fmt.Errorf("this release has no stage %q", h.Handler)}
	}
	return st
}

// stageErrors returns why stages could not be made, by hook name.
func (act *active) stageErrors() map[string]string {
	all := make(map[string]string)
	for i := range act.stages {
		if err := act.stages[i].err; err != nil {
			all[act.Config.Hooks[i].Name] = err.Error()
		}
	}
	return all
}
