package control

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus/aggregator/internal/intake"
	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
	"github.com/hookfabric/hookfabric/schema"
)

// none is the request or answer of verbs that have nothing to say.
type none struct{}

// queue returns the injection queue, or an error if the broker has no queue.
func (c *Control) queue() (stores.Queue, error) {
	if c.opt.Queue == nil {
		return nil, unavailable("this broker does not store messages for agents")
	}
	return c.opt.Queue, nil
}

// currentFor bounds how long a listing waits for the items that other brokers accepted.
const currentFor = time.Second

// pending lists the items that wait, accepted by any broker. If the list may be incomplete, it has
// the items that this broker knows.
func (c *Control) pending(ctx context.Context, agent string, req *schema.PendingRequest) (*schema.PendingAnswer, error) {
	q, err := c.queue()
	if err != nil {
		return nil, err
	}
	const usual, most = 1000, 10_000
	switch {
	case req.Limit < 0 || req.Limit > most:
		return nil, badRequest("limit is %d; use at most %d", req.Limit, most)
	case req.Limit == 0:
		req.Limit = usual
	}
	ctx, cancel := context.WithTimeout(ctx, currentFor)
	defer cancel()
	if err := q.Current(ctx); err != nil {
		c.opt.Logger.Info("the list shows the messages that this broker knows; another broker may have accepted more", "error", err)
	}
	answer := q.Pending(agent, req.Limit)
	return &answer, nil
}

// maxAckRequest is the largest number of events in one request.
const maxAckRequest = 1000

// ack acknowledges events, or renews their leases.
func (c *Control) ack(ctx context.Context, agent string, req *schema.AckRequest) (none, error) {
	q, err := c.queue()
	if err != nil {
		return none{}, err
	}
	if n := len(req.Events); n > maxAckRequest {
		return none{}, badRequest("events has %d entries; acknowledge at most %d at a time", n, maxAckRequest)
	}
	events := make([]string, len(req.Events))
	for i, s := range req.Events {
		if events[i], err = eventIDOf("events", s); err != nil {
			return none{}, err
		}
	}
	if req.Fabric != "" && req.Fabric != c.fabric() || len(events) == 0 {
		return none{}, nil // they are another fabric's: nothing of them is here
	}
	switch {
	case req.Release && req.Hold:
		return none{}, q.Release(ctx, agent, events)
	case req.Release:
		return none{}, badRequest("release needs hold; set both, so that a broker that does not know release acknowledges nothing")
	case req.Hold:
		return none{}, q.Hold(ctx, agent, events)
	}
	return none{}, c.opt.Deliverer.Acknowledge(ctx, agent, events)
}

// mode returns how answers of others reach the agent, and changes that if the request has a mode.
func (c *Control) mode(ctx context.Context, agent string, req *schema.ModeRequest) (*schema.ModeAnswer, error) {
	q, err := c.queue()
	if err == nil && req.VoteOnly != nil {
		err = q.Note(ctx, agent, "", func(p *schema.Peers) { p.VoteOnly = *req.VoteOnly })
	}
	if err != nil {
		return nil, err
	}
	return &schema.ModeAnswer{VoteOnly: q.Peers(agent, "").VoteOnly}, nil
}

// checkpoint records that the agent starts again with all items so far.
func (c *Control) checkpoint(ctx context.Context, agent string, _ *none) (none, error) {
	if _, err := c.queue(); err != nil {
		return none{}, err
	}
	return none{}, c.opt.Deliverer.Checkpoint(ctx, agent, "")
}

// roundOf starts, shows or wraps up the agent's round.
func (c *Control) roundOf(ctx context.Context, agent string, req *schema.RoundRequest) (*schema.Round, error) {
	all := c.opt.Rounds
	if all == nil {
		return nil, unavailable("this broker does not store rounds")
	}
	switch req.Action {
	case "", schema.RoundShow:
		r, ok := all.Get(agent)
		if !ok {
			return nil, notFound("the agent %q has no round; start one", agent)
		}
		return &r, nil
	case schema.RoundStart:
		r, err := all.Start(ctx, agent, req)
		if err == nil && c.opt.Active().Defers(agent) {
			c.opt.Deliverer.Release(ctx, agent, "")
		}
		return &r, err
	case schema.RoundWrapUp:
		r, _, err := all.WrapUp(ctx, agent, req)
		if act := c.opt.Active(); err == nil && act != nil && r.SoftDue() && act.WarnsAgent(agent) {
			c.opt.Deliverer.Warn(ctx, act, &r, "")
		}
		return &r, err
	}
	return nil, badRequest("round has no action %q; use %s, %s or %s", req.Action, schema.RoundStart, schema.RoundShow, schema.RoundWrapUp)
}

// drain delivers everything that the agent's stages would deliver, at once and as one user message.
func (c *Control) drain(ctx context.Context, agent string, req *schema.DrainRequest) (*schema.DrainAnswer, error) {
	if _, err := c.queue(); err != nil {
		return nil, err
	}
	id, err := eventIDOf("event_id", req.EventID)
	if err != nil {
		return nil, err
	}
	act := c.opt.Active()
	if act == nil {
		return nil, noActive()
	}
	r := schema.Routing{Event: schema.UserPromptSubmit, Agent: agent, Session: req.Session, ID: id, MidTurn: req.One}
	answer, err := c.opt.Deliverer.DeliverNow(ctx, act, r, req.One)
	if err != nil {
		return nil, err
	}
	answer.Fabric, answer.EventID = c.fabric(), id
	return answer, nil
}

// fetch reads a part of an object that an item for the agent names.
func (c *Control) fetch(ctx context.Context, agent string, req *schema.FetchRequest) (*schema.FetchAnswer, error) {
	q, err := c.queue()
	if err != nil {
		return nil, err
	}
	store := c.opt.Objects
	switch {
	case store == nil:
		return nil, unavailable("this broker has no object store")
	case req.Offset < 0:
		return nil, badRequest("offset is %d; use 0 or more", req.Offset)
	case !q.Names(agent, req.Session, req.Digest):
		return nil, notFound("no waiting item of the agent %q names the object %.80q", agent, req.Digest)
	}
	data, size, err := store.Part(ctx, req.Digest, req.Offset)
	if err != nil {
		return nil, err
	}
	return &schema.FetchAnswer{Data: data, Size: size}, nil
}

// fabric returns the id of the fabric that the broker serves now.
func (c *Control) fabric() string {
	if act := c.opt.Active(); act != nil && act.Config.Fabric != "" {
		return act.Config.Fabric
	}
	return c.opt.Fabric
}

// Version returns the active configuration's version; 0: none yet.
func (c *Control) Version() uint64 {
	if act := c.opt.Active(); act != nil {
		return act.Config.Version
	}
	return 0
}

// eventIDOf returns an event's id in its canonical form, in which ids are compared.
func eventIDOf(member, s string) (string, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		return "", badRequest("%s has %.64q, which is not a UUID; send the id of an event", member, s)
	}
	return id.String(), nil
}

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
