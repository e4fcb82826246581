package policytest

import (
	"slices"
	"sync"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// reached counts what the cases reach. It is safe for concurrent use.
type reached struct {
	mu         sync.Mutex
	asked      map[string]int     // calls by hook
	conditions map[string]*branch // by text
}

// A branch counts the values of a condition.
type branch struct{ yes, no int }

// compiler returns a compiler of conditions whose values are counted.
func (r *reached) compiler(compile func(string) (dispatch.Condition, error)) func(string) (dispatch.Condition, error) {
	r.asked, r.conditions = make(map[string]int), make(map[string]*branch)
	return func(expr string) (dispatch.Condition, error) {
		c, err := compile(expr)
		if err != nil {
			return nil, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.conditions[expr] == nil {
			r.conditions[expr] = new(branch)
		}
		return counted{c, r, r.conditions[expr]}, nil
	}
}

// counted is a condition that counts its values.
type counted struct {
	dispatch.Condition

	reached *reached
	branch  *branch
}

// Holds evaluates the condition and counts the value. An error counts as true, as in a broker.
func (c counted) Holds(v *dispatch.View) (bool, error) {
	holds, err := c.Condition.Holds(v)
	c.reached.mu.Lock()
	defer c.reached.mu.Unlock()
	if holds || err != nil {
		c.branch.yes++
	} else {
		c.branch.no++
	}
	return holds, err
}

// hooks counts the hooks of a verdict.
func (r *reached) hooks(v *schema.Verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range v.ExecutedHooks {
		r.asked[v.ExecutedHooks[i].Hook]++
	}
}

// A Gap is a hook, or a value of its condition, that no case reached.
type Gap struct {
	Hook string `json:"hook"`
	// Missing is what no case did: "run", "when true" or "when false".
	Missing string `json:"missing"`
}

// Gaps returns what no case reached, in the order of the hooks. Stages of the broker are left out.
func (e *Engine) Gaps() []Gap {
	e.reached.mu.Lock()
	defer e.reached.mu.Unlock()
	gaps := []Gap{}
	for i := range e.config.Hooks {
		h := &e.config.Hooks[i]
		if h.Stage() || h.Derived() || h.Mode == schema.Shadow {
			continue
		}
		if e.reached.asked[h.Name] == 0 {
			gaps = append(gaps, Gap{h.Name, "run"})
		}
		b := e.reached.conditions[h.When]
		if h.When != "" && (b == nil || b.yes == 0) {
			gaps = append(gaps, Gap{h.Name, "when true"})
		}
		if h.When != "" && (b == nil || b.no == 0) {
			gaps = append(gaps, Gap{h.Name, "when false"})
		}
	}
	return gaps
}

// Untested returns the hooks that no case ran.
func (e *Engine) Untested() (names []string) {
	for _, g := range e.Gaps() {
		if g.Missing == "run" && !slices.Contains(names, g.Hook) {
			names = append(names, g.Hook)
		}
	}
	return names
}
