package aggregator

import (
	"context"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// lostCalls is in the place of a decision of calls that their machine forgot.
const lostCalls = "lost"

// unjudgedDecisions are what may become of a call that nobody judges.
func unjudgedDecisions() []string {
	return []string{string(schema.Continue), string(schema.Deny), string(schema.Fail), lostCalls}
}

// recordUnjudged takes down what a shim decided while nobody answered it. What was
// said before is not counted, logged and told again.
func (a *Aggregator) recordUnjudged(ctx context.Context, agent string, req *schema.RecordRequest) (*schema.RecordAnswer, error) {
	store := a.opt.Memory.Unjudged
	if store == nil {
		return nil, unavailable("this broker keeps no record of what nobody judged")
	}
	if n := len(req.Calls); n > schema.MaxUnjudged {
		return nil, badRequest("calls lists %d; at most %d are handed in at a time", n, schema.MaxUnjudged)
	}
	for i := range req.Calls {
		if err := checkUnjudged(&req.Calls[i], agent); err != nil {
			return nil, err
		}
	}
	known, err := store.Add(ctx, req.Calls, a.unjudged)
	if err != nil {
		return nil, err
	}
	return &schema.RecordAnswer{Fabric: a.fabric(), Known: known}, nil
}

// maxName bounds a tool's name and a session in a record.
const maxName = 1024

// checkUnjudged refuses what says nothing, and puts in whose it is.
func checkUnjudged(u *schema.Unjudged, agent string) (err error) {
	if u.EventID, err = eventIDOf("calls", u.EventID); err != nil {
		return err
	}
	u.Agent, u.Why = agent, strings.ToValidUTF8(u.Why[:min(len(u.Why), schema.MaxWhy)], "")
	switch {
	case u.Lost < 0:
		return badRequest("lost is %d; count from 1", u.Lost)
	case len(u.Tool) > maxName || len(u.Session) > maxName:
		return badRequest("a tool's name and a session have at most %d bytes", maxName)
	case u.Lost > 0:
		u.Event, u.Decision = "", ""
		return nil
	case !u.Event.Known():
		return badRequest("event is %.64q, which is none; write the event's name", string(u.Event))
	case !slices.Contains([]schema.Decision{schema.Continue, schema.Deny, schema.Fail}, u.Decision):
		return badRequest("decision is %.64q; write continue, deny or fail", string(u.Decision))
	}
	return nil
}

// unjudged tells of a call that nobody judged. The worst of them is one that
// passed: ops people look for it.
func (a *Aggregator) unjudged(u *schema.Unjudged) {
	if u.Lost > 0 {
		a.metrics.unjudged.WithLabelValues(lostCalls).Add(float64(u.Lost))
	} else {
		a.metrics.unjudged.WithLabelValues(string(u.Decision)).Inc()
	}
	a.opt.Logger.Warn("a call was not judged", "decision", u.Decision, "event", u.Event, "event_id", u.EventID, "agent", u.Agent,
		"tool", u.Tool, "time", u.Time, "why", u.Why, "lost", u.Lost)
	a.feed.unjudged(u)
}
