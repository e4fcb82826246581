package dispatch

import (
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A Shadowed is the result of a shadow hook, and what the verdict would have been if the
// hook had counted.
type Shadowed struct {
	Hook *schema.Hook
	// Part is its part.
	Part schema.Verdict
	// Decided is the decision of the verdict; Would is what it would have been.
	Decided, Would schema.Decision
	// Rewrites means that later hooks would have seen another input, output, message or
	// response. Would is then based on the answers that they gave to the original.
	Rewrites bool
}

// startShadows runs the shadow hooks of a call, within the limit. The verdict is complete
// and does not wait for them. They leave half of a worker's slots to other hooks. Each
// sees the event as the hooks before it left it, and only its own timeout applies.
func (c *call) startShadows(ctx context.Context) {
	n := 0
	for n < len(c.plan.Shadow) && c.d.shadows.TryAcquire(c.shadowWeight()) {
		n++
	}
	if dropped := len(c.plan.Shadow) - n; dropped > 0 && c.d.opt.Watch.ShadowDropped != nil {
		c.d.opt.Watch.ShadowDropped(dropped)
	}
	if n > 0 {
		go c.d.guarded(func() { c.askShadows(ctx, c.plan.Shadow[:n]) })
	}
}

// shadowWeight is how many units of the shadow limit one batch takes: it keeps the event
// in memory until it is answered.
func (c *call) shadowWeight() int64 { return int64(min(1+len(c.req.Body)>>20, c.d.opt.Shadows)) }

// askShadows runs the shadow hooks whose conditions hold. No other goroutine uses the
// call.
func (c *call) askShadows(ctx context.Context, left []Batch) {
	defer func() { c.d.shadows.Release(int64(len(left)) * c.shadowWeight()) }()
	for ; len(left) > 0; left = left[1:] {
		b := &left[0]
		c.viewBefore(b.Hooks[0])
		until := time.Now().Add(2*c.snap.Config.Hooks[b.Hooks[0]].Timeout.Std() + time.Second)
		hooks := c.holding(b.Hooks, until)
		if len(hooks) == 0 {
			c.d.shadows.Release(c.shadowWeight())
			continue
		}
		alone := &call{d: c.d, snap: c.snap, plan: c.plan, req: c.req, view: c.view, until: until}
		go c.d.guarded(func() {
			defer c.d.shadows.Release(c.shadowWeight())
			// If the local worker sends heartbeats it is asked like others, because then
			// its slots are counted.
			beats := c.d.opt.Members.hasOther(b.Pool, nil)
			r := &run{call: alone, batch: b, hooks: hooks, body: alone.view.body, noLocal: beats, entry: queueEntry{shadow: true}}
			r.do(ctx)
			for i := range r.parts {
				c.observeShadow(&alone.view, &r.parts[i])
			}
		})
	}
}

// observeShadow reports the result of a shadow hook. One that found no slot counts as
// dropped, because it would have got one if it had counted.
func (c *call) observeShadow(seen *View, p *part) {
	if p.kind != schema.Busy {
		c.compare(seen, p)
	} else if c.d.opt.Watch.ShadowDropped != nil {
		c.d.opt.Watch.ShadowDropped(1)
	}
}

// viewBefore sets the call's view to the event as the hooks before the given one left it.
func (c *call) viewBefore(hook int) {
	if c.origin == nil {
		origin := c.view // no rewrite was applied
		c.origin = &origin
	}
	var rw jsontext.Value
	for i := range c.partsBefore(hook) {
		rw = lastRewrite(rw, c.parts[i].verdict.Rewritten(c.req.Event))
	}
	if bytes.Equal(rw, c.handed) {
		return
	}
	if c.handed == nil {
		*c.origin = c.view // it may be decoded by now
	}
	next, err := *c.origin, error(nil)
	if rw != nil {
		next, err = c.origin.rewritten(rw)
	}
	if err == nil {
		c.view, c.handed = next, rw
	}
}

// partsBefore counts the verdict's parts of hooks registered before the given one.
func (c *call) partsBefore(hook int) int {
	n := 0
	for n < len(c.parts) && c.parts[n].hook < hook {
		n++
	}
	return n
}

// keepParts stores the verdict's parts if the plan has shadow hooks, and reports whether
// it did.
func (c *call) keepParts(parts ...part) bool {
	switch {
	case len(c.plan.Shadow) == 0:
		return false
	case c.parts == nil:
		c.parts = slices.Clip(parts) // not changed any more
	default:
		c.parts = append(c.parts, parts...)
	}
	return true
}

// last is the index of a part that is about the whole event.
const last = math.MaxInt

// compare reports a shadow hook that saw the event in seen: it folds the verdict again
// with the hook at its place.
func (c *call) compare(seen *View, p *part) {
	if c.d.opt.Watch.Shadow == nil {
		return
	}
	var would schema.Verdict
	t, at := c.req.Event, c.partsBefore(p.hook)
	for i := range c.parts[:at] {
		fold(t, &would, &c.parts[i].verdict)
	}
	reached := !would.Ended(t)
	fold(t, &would, &p.verdict)
	for i := range c.parts[at:] {
		fold(t, &would, &c.parts[at+i].verdict)
	}
	c.d.opt.Watch.Shadow(c.req, &Shadowed{
		Hook: &c.snap.Config.Hooks[p.hook], Part: p.verdict, Decided: plainDecision(c.verdict.Decision), Would: plainDecision(would.Decision),
		Rewrites: reached && changes(seen, p.verdict.Rewritten(t)),
	})
}

// plainDecision returns the decision of a verdict; none is continue.
func plainDecision(d schema.Decision) schema.Decision {
	if d == schema.None {
		return schema.Continue
	}
	return d
}

// changes reports whether a rewrite differs from the event in seen. Many hooks return
// their input unchanged.
func changes(seen *View, rewrite jsontext.Value) bool {
	if rewrite == nil {
		return false
	}
	e, err := seen.Event()
	if err != nil {
		return true
	}
	before, errBefore := schema.Marshal(e)
	_, after, errAfter := e.Rewritten(rewrite)
	return errBefore != nil || errAfter != nil || !bytes.Equal(before, after)
}
