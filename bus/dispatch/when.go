package dispatch

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A Condition decides from the event whether a hook is asked. It delays the call, so it
// must be fast.
type Condition interface {
	Holds(v *View) (bool, error)
}

// A View is an event as conditions see it, with the rewrites of the hooks before. The
// body is decoded on first use. A View is not safe for concurrent use.
type View struct {
	// Routing is known without the body.
	schema.Routing
	// Made is a cache for conditions. Only they use it.
	Made any

	body   []byte
	decode Decoder
	event  *schema.Event
	err    error
}

// A Decoder reads an event's JSON, as [schema.DecodeEvent] does.
type Decoder func(body []byte, r schema.Routing) (*schema.Event, error)

// NewView returns the view of an event that is not decoded yet.
func NewView(r schema.Routing, body []byte) *View {
	return &View{Routing: r, body: body, decode: schema.DecodeEvent}
}

// ViewOf returns the view of an event that is decoded. It must not be changed.
func ViewOf(e *schema.Event) *View {
	return &View{
		Routing: schema.Routing{Event: e.HookType, Agent: e.AgentID, Session: e.SessionID, Tool: e.ToolName, ID: e.EventID},
		event:   e,
	}
}

// isDecoded reports whether decoding was tried.
func (v *View) isDecoded() bool { return v.event != nil || v.err != nil }

// Event returns the whole event. It is shared and must not be changed.
func (v *View) Event() (*schema.Event, error) {
	if v.event == nil && v.err == nil {
		v.event, v.err = v.decode(v.body, v.Routing)
	}
	return v.event, v.err
}

// rewritten returns the view of the event after a rewrite. It has a new body and is
// decoded.
func (v *View) rewritten(rewrite jsontext.Value) (View, error) {
	e, err := v.Event()
	if err != nil {
		return View{}, err
	}
	next, body, err := e.Rewritten(rewrite)
	if err != nil {
		return View{}, err
	}
	return View{Routing: v.Routing, body: body, decode: v.decode, event: next}, nil
}

// holding returns the hooks whose condition holds. A condition that cannot be evaluated
// counts as true, so that an error does not switch a policy off.
func (c *call) holding(hooks []int, until time.Time) []int {
	var kept []int
	for _, i := range hooks {
		if cond := c.snap.when[i]; cond == nil || c.holds(i, cond, until) {
			kept = append(kept, i)
		}
	}
	return kept
}

// holds reports whether a condition holds. If no time is left it returns true at once: no
// hook is asked, and the failure policy decides.
func (c *call) holds(i int, cond Condition, until time.Time) bool {
	if !time.Now().Before(until) {
		return true
	}
	ok, err := evaluate(cond, &c.view)
	if err == nil {
		return ok
	}
	if c.view.err != nil {
		return true // the worker reports what is wrong with the event
	}
	if c.d.opt.Watch.ConditionFailed != nil {
		c.d.opt.Watch.ConditionFailed(&c.snap.Config.Hooks[i], err)
	}
	return true
}

// evaluate turns a panic of a condition into an error.
func evaluate(cond Condition, v *View) (ok bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	return cond.Holds(v)
}
