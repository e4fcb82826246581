package builtin

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// maxDelayed is how many agents are counted. Further agents are not delayed.
const maxDelayed = 4096

// defaultAfterTools is after how many tool calls an agent is delayed, so that there is
// work to interrupt.
const defaultAfterTools = 3

// delayOptions are the options of "debug_delay".
type delayOptions struct {
	// Seconds is the length of the delay; 0: no delay.
	Seconds float64 `json:"debug_delay_seconds"`
	// AfterTools is how many tool calls come before the delay; absent: 3.
	AfterTools *int `json:"debug_delay_after_n_tools"`
}

// newDebugDelay makes the hook "debug_delay": it delays an agent once, after some tool
// calls, so that a person can watch messages arrive during the delay. Each worker counts
// its own calls.
func newDebugDelay(h schema.Hook) (workers.Handler, error) {
	o, err := options[delayOptions](h)
	if err != nil {
		return nil, err
	}
	d := &debugDelay{length: time.Duration(o.Seconds * float64(time.Second)), after: defaultAfterTools, seen: map[string]*calls{}}
	if o.AfterTools != nil {
		d.after = *o.AfterTools
	}
	timeout := h.Timeout.Std()
	timeout = cmp.Or(timeout, schema.DefaultTimeout.Std())
	switch {
	case !h.Event.HasTool():
		return nil, fmt.Errorf("%q counts tool calls, but %s is not a tool call; put it under PostToolUse", h.Handler, h.Event)
	case o.Seconds < 0:
		return nil, fmt.Errorf("the option \"debug_delay_seconds\" of %q is %v; write 0 for no delay, or more", h.Handler, o.Seconds)
	case d.after < 0:
		return nil, fmt.Errorf("the option \"debug_delay_after_n_tools\" of %q is %d; write how many tool calls come before the delay", h.Handler, d.after)
	case o.Seconds >= timeout.Seconds():
		return nil, fmt.Errorf("%q cannot delay for %vs: its timeout ends it after %v; set a longer timeout or a shorter debug_delay_seconds", h.Handler, o.Seconds, timeout)
	}
	return d, nil
}

// debugDelay counts the calls of each agent.
type debugDelay struct {
	length time.Duration
	after  int

	mu   sync.Mutex // guards seen and its values
	seen map[string]*calls
}

// calls are the counted calls of one agent.
type calls struct {
	n    int
	last string // the last counted event; the same id again is the same call
	done bool
}

// Handle counts the call, and delays it if it is due.
func (d *debugDelay) Handle(ctx context.Context, e *schema.Event) (schema.Result, error) {
	if d.length == 0 || !d.due(e) {
		return schema.Result{}, nil
	}
	timer := time.NewTimer(d.length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return schema.Result{}, nil
	case <-ctx.Done():
		return schema.Result{}, fmt.Errorf("the delay of %v ended early: %w", d.length, context.Cause(ctx))
	}
}

// due counts the call of e, and reports whether it is delayed. Before a tool runs, the
// current call does not count yet.
func (d *debugDelay) due(e *schema.Event) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.seen[e.AgentID]
	if c == nil {
		if len(d.seen) == maxDelayed {
			return false
		}
		c = &calls{}
		d.seen[e.AgentID] = c
	}
	if c.done || c.last == e.EventID && e.EventID != "" {
		return false
	}
	before := c.n
	c.n, c.last = c.n+1, e.EventID
	if e.HookType != schema.PreToolUse {
		before = c.n
	}
	c.done = before >= d.after
	return c.done
}
