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

// A Shadowed is what came of asking one shadow hook, and what would have been
// different if it had counted at its place in the order.
type Shadowed struct {
	Hook *schema.Hook
	// Part is what it said.
	Part schema.Verdict
	// Decided is what the call came to; Would is what it would have come to.
	Decided, Would schema.Decision
	// Rewrites: who comes after it would have got another input, output, message
	// or response. What they would have said of that nobody knows: Would holds
	// for what they said.
	Rewrites bool
}

// startShadows has the shadow hooks of a call asked, if there is room for them.
// The verdict is complete by then: nobody waits for them, they leave half of a
// worker's slots to hooks that count, and each sees the event as the hooks before
// it left it. The call's own time does not bound them, only their own does.
func (c *call) startShadows(ctx context.Context) {
	room := 0
	for room < len(c.plan.Shadow) && c.d.reserve(c.share()) {
		room++
	}
	if dropped := len(c.plan.Shadow) - room; dropped > 0 && c.d.opt.Watch.ShadowDropped != nil {
		c.d.opt.Watch.ShadowDropped(dropped)
	}
	if room > 0 {
		go c.d.guarded(func() { c.askShadows(ctx, c.plan.Shadow[:room]) })
	}
}

// share is how much of the room for shadow hooks one takes: what it keeps in
// memory until it has answered is as large as the event.
func (c *call) share() int { return min(1+len(c.req.Body)>>20, cap(c.d.shadows)) }

// reserve takes so much of the room for shadow hooks, if there is as much.
func (d *Dispatcher) reserve(share int) bool {
	for taken := range share {
		select {
		case d.shadows <- struct{}{}:
		default:
			d.release(taken)
			return false
		}
	}
	return true
}

func (d *Dispatcher) release(share int) {
	for range share {
		<-d.shadows
	}
}

// askShadows asks the shadow hooks whose conditions hold. The call is theirs
// alone by now.
func (c *call) askShadows(ctx context.Context, left []Batch) {
	defer func() { c.d.release(len(left) * c.share()) }()
	for ; len(left) > 0; left = left[1:] {
		b := &left[0]
		c.goTo(b.Hooks[0])
		until := time.Now().Add(2*c.snap.Config.Hooks[b.Hooks[0]].Timeout.Std() + time.Second)
		hooks := c.holding(b.Hooks, until)
		if len(hooks) == 0 {
			c.d.release(c.share())
			continue
		}
		alone := &call{d: c.d, snap: c.snap, plan: c.plan, req: c.req, view: c.view, until: until}
		go c.d.guarded(func() {
			defer c.d.release(c.share())
			// A worker that beats is asked like others, also the one in this process:
			// its slots are counted then.
			beats := c.d.opt.Members.other(b.Pool, nil)
			r := &run{call: alone, batch: b, hooks: hooks, body: alone.view.body, noLocal: beats, turn: turn{aside: true}}
			r.do(ctx)
			for i := range r.parts {
				c.told(&alone.view, &r.parts[i])
			}
		})
	}
}

// told tells what came of a shadow hook, unless it found no slot: had it counted,
// it would have been given one.
func (c *call) told(seen *View, p *part) {
	if p.kind != schema.Busy {
		c.tell(seen, p)
	} else if c.d.opt.Watch.ShadowDropped != nil {
		c.d.opt.Watch.ShadowDropped(1)
	}
}

// goTo makes the call's view that of a hook: the event as those before it left
// it.
func (c *call) goTo(hook int) {
	if c.origin == nil {
		origin := c.view // nothing was handed on
		c.origin = &origin
	}
	var rw jsontext.Value
	for i := range c.before(hook) {
		rw = later(rw, c.parts[i].verdict.Rewritten(c.req.Event))
	}
	if bytes.Equal(rw, c.handed) {
		return
	}
	if c.handed == nil {
		*c.origin = c.view // which may be decoded by now
	}
	next, err := *c.origin, error(nil)
	if rw != nil {
		next, err = c.origin.rewritten(rw)
	}
	if err == nil {
		c.view, c.handed = next, rw
	}
}

// before counts the parts of the verdict that are of hooks before this one.
func (c *call) before(hook int) int {
	n := 0
	for n < len(c.parts) && c.parts[n].hook < hook {
		n++
	}
	return n
}

// keep remembers the parts of the verdict, if some shadow hook will be held
// against them, and reports whether it did.
func (c *call) keep(parts ...part) bool {
	switch {
	case len(c.plan.Shadow) == 0:
		return false
	case c.parts == nil:
		c.parts = slices.Clip(parts) // nobody changes them any more
	default:
		c.parts = append(c.parts, parts...)
	}
	return true
}

// last is the place of what is said behind all hooks.
const last = math.MaxInt

// tell tells what came of a shadow hook that saw the event as in the view: the
// same fold once more, with the hook at its place in it.
func (c *call) tell(seen *View, p *part) {
	if c.d.opt.Watch.Shadow == nil {
		return
	}
	var would schema.Verdict
	t, at := c.req.Event, c.before(p.hook)
	for i := range c.parts[:at] {
		fold(t, &would, &c.parts[i].verdict)
	}
	reached := !would.Ended(t)
	fold(t, &would, &p.verdict)
	for i := range c.parts[at:] {
		fold(t, &would, &c.parts[at+i].verdict)
	}
	c.d.opt.Watch.Shadow(c.req, &Shadowed{
		Hook: &c.snap.Config.Hooks[p.hook], Part: p.verdict, Decided: said(c.verdict.Decision), Would: said(would.Decision),
		Rewrites: reached && changes(seen, p.verdict.Rewritten(t)),
	})
}

// said is a decision as a verdict says it.
func said(d schema.Decision) schema.Decision {
	if d == schema.None {
		return schema.Continue
	}
	return d
}

// changes reports whether a rewrite leaves another event than the one seen: many
// hooks hand back what they were given.
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
