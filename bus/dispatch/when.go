package dispatch

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A Condition decides from the event whether a hook is asked at all. It is
// evaluated on the path of the call, so it must be done in no time.
type Condition interface {
	Holds(v *View) (bool, error)
}

// A View is an event as conditions look at it: as the hooks before left it. The
// body is decoded when the first of them needs it, and then never again. It is
// for one goroutine at a time.
type View struct {
	// Routing is known without the body.
	schema.Routing
	// Made is what conditions made of the event so far, for those that come
	// after them. It is theirs alone.
	Made any

	body   []byte
	decode Decoder
	event  *schema.Event
	err    error
}

// A Decoder reads an event's JSON, as [schema.DecodeEvent] does.
type Decoder func(body []byte, r schema.Routing) (*schema.Event, error)

// NewView is the view of an event that has not been decoded.
func NewView(r schema.Routing, body []byte) *View {
	return &View{Routing: r, body: body, decode: schema.DecodeEvent}
}

// read reports whether the body was decoded, or was tried to be.
func (v *View) read() bool { return v.event != nil || v.err != nil }

// Event is the whole event. It is shared and must not be changed.
func (v *View) Event() (*schema.Event, error) {
	if v.event == nil && v.err == nil {
		v.event, v.err = v.decode(v.body, v.Routing)
	}
	return v.event, v.err
}

// rewritten is the view of the event with a rewrite put in: a body of its own,
// but nothing to decode.
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

// holding is the hooks whose condition holds. A condition that cannot be
// evaluated counts as true: a policy is not switched off by an error.
func (c *call) holding(hooks []int, until time.Time) []int {
	var kept []int
	for _, i := range hooks {
		if cond := c.snap.when[i]; cond == nil || c.holds(i, cond, until) {
			kept = append(kept, i)
		}
	}
	return kept
}

// holds reports whether a condition holds. Where no time is left nobody is asked
// anyway, and the failure policy decides: that must not take longer still.
func (c *call) holds(i int, cond Condition, until time.Time) bool {
	if !time.Now().Before(until) {
		return true
	}
	ok, err := evaluate(cond, &c.view)
	if err == nil {
		return ok
	}
	if c.view.err != nil {
		return true // the worker will say what is wrong with the event
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
