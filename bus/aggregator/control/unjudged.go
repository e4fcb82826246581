package control

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator/internal/intake"
	"github.com/hookfabric/hookfabric/schema"
)

// lostCalls takes the place of the decision for calls that their machine forgot.
const lostCalls = "lost"

// UnjudgedDecisions returns the outcomes of a call that no broker judged.
func UnjudgedDecisions() []string {
	return []string{string(schema.Continue), string(schema.Deny), string(schema.Fail), lostCalls}
}

// recordUnjudged records the decisions that a shim made while no broker answered it. A call
// reported before is not counted, logged or published again.
func (c *Control) recordUnjudged(ctx context.Context, agent string, req *schema.RecordRequest) (*schema.RecordAnswer, error) {
	store := c.opt.Unjudged
	if store == nil {
		return nil, unavailable("this broker does not record calls that were not judged")
	}
	if n := len(req.Calls); n > schema.MaxUnjudged {
		return nil, badRequest("calls has %d entries; send at most %d at a time", n, schema.MaxUnjudged)
	}
	for i := range req.Calls {
		if err := checkUnjudged(&req.Calls[i], agent); err != nil {
			return nil, err
		}
	}
	size := sizeOf(req.Calls...)
	if !c.records.Take(agent, size, time.Now()) {
		c.opt.Limits.Refused(agent, intake.LimitUnjudged)
		return nil, unavailable("the agent reported %d KiB of calls that were not judged within %s, which is its limit at one broker (--agent-unjudged-bytes); "+
			"keep the rest, and report it later", c.records.Most>>10, c.records.Per)
	}
	var stored atomic.Int64
	known, err := store.Add(ctx, req.Calls, func(u *schema.Unjudged) {
		stored.Add(sizeOf(*u))
		c.unjudged(u)
	})
	c.records.Refund(agent, size-stored.Load()) // calls reported before take no further room
	if err != nil {
		return nil, err
	}
	return &schema.RecordAnswer{Fabric: c.fabric(), Known: known}, nil
}

// unjudgedShare is about how many bytes a call takes in addition to its texts.
const unjudgedShare = 256

// sizeOf returns about how many bytes calls take in the store.
func sizeOf(calls ...schema.Unjudged) (n int64) {
	for i := range calls {
		n += unjudgedShare + int64(len(calls[i].Tool)+len(calls[i].Session)+len(calls[i].Why))
	}
	return n
}

// maxName bounds a tool's name and a session in a record.
const maxName = 1024

// checkUnjudged returns an error for a record without content, and sets its agent.
func checkUnjudged(u *schema.Unjudged, agent string) (err error) {
	if u.EventID, err = eventIDOf("calls", u.EventID); err != nil {
		return err
	}
	u.Agent, u.Why = agent, strings.ToValidUTF8(u.Why[:min(len(u.Why), schema.MaxWhy)], "")
	switch {
	case u.Lost < 0:
		return badRequest("lost is %d; use 1 or more", u.Lost)
	case len(u.Tool) > maxName || len(u.Session) > maxName:
		return badRequest("a tool's name and a session have at most %d bytes", maxName)
	case u.Lost > 0:
		u.Event, u.Decision = "", ""
		return nil
	case !u.Event.Known():
		return badRequest("event is %.64q, which is not an event; send the event's name", string(u.Event))
	case !slices.Contains([]schema.Decision{schema.Continue, schema.Deny, schema.Fail}, u.Decision):
		return badRequest("decision is %.64q; use continue, deny or fail", string(u.Decision))
	}
	return nil
}

// unjudged counts, logs and publishes a call that no broker judged. Operators look for the calls
// that passed.
func (c *Control) unjudged(u *schema.Unjudged) {
	if u.Lost > 0 {
		c.opt.Report.Metrics.Unjudged.WithLabelValues(lostCalls).Add(float64(u.Lost))
	} else {
		c.opt.Report.Metrics.Unjudged.WithLabelValues(string(u.Decision)).Inc()
	}
	c.opt.Logger.Warn("a shim reported a call that no broker judged", "decision", u.Decision, "event", u.Event, "event_id", u.EventID, "agent", u.Agent,
		"tool", u.Tool, "time", u.Time, "why", u.Why, "lost", u.Lost)
	c.opt.Report.Feed.Unjudged(u)
}
