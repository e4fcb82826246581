package aggregator

import (
	"github.com/hookfabric/hookfabric/bus/state/sessions"
	"github.com/hookfabric/hookfabric/schema"
)

// notice records that the agent of an event is active.
type notice struct{ a *Aggregator }

func (s notice) pass(e *arrival) bool {
	s.a.seen(&e.req.Routing, e.req.Body)
	return true
}

// seen records that the agent of an event is active, and its description when its session starts or
// ends.
func (a *Aggregator) seen(r *schema.Routing, body []byte) {
	if a.opt.Memory.Queue != nil {
		a.opt.Memory.Queue.Seen(r.Agent, r.Session, r.Tool)
	}
	if a.opt.Memory.Sessions == nil {
		return
	}
	if r.Event == schema.SessionEnd {
		a.opt.Memory.Sessions.Describe(sessions.Agent{Agent: r.Agent, Session: r.Session, Ended: true})
		return
	}
	if r.Event == schema.SessionStart {
		if e, err := schema.DecodeEvent(body, *r); err == nil {
			a.opt.Memory.Sessions.Describe(sessions.Agent{Agent: r.Agent, Session: r.Session, Runtime: e.Runtime,
				Version: e.Labels[schema.LabelVersion], Host: e.Labels[schema.LabelHost]})
		}
	}
	a.opt.Memory.Sessions.Seen(r.Agent, r.Session)
}
