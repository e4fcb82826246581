package aggregator

import (
	"context"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// drain delivers everything that the agent's stages would deliver, at once and as one user message.
// It is for runtimes that accept messages only between turns.
func (a *Aggregator) drain(ctx context.Context, agent string, req *schema.DrainRequest) (*schema.DrainAnswer, error) {
	q, err := a.queue()
	if err != nil {
		return nil, err
	}
	id, err := eventIDOf("event_id", req.EventID)
	if err != nil {
		return nil, err
	}
	act := a.config.active.Load()
	if act == nil {
		return nil, unavailable("no configuration is active; publish one with 'broker apply FILE'")
	}
	r := schema.Routing{Event: schema.UserPromptSubmit, Agent: agent, Session: req.Session, ID: id, MidTurn: req.One}
	a.seen(&r, nil)
	hooks := act.deliverers(agent)
	if len(hooks) == 0 {
		return &schema.DrainAnswer{Fabric: a.fabric(), EventID: id}, nil
	}
	d := &delivery{agg: a, act: act, hooks: hooks, room: a.room(0).half(), to: schema.Receiver{Routing: r, Round: a.round(agent)}, by: make(map[uint64]int)}
	claim := &queue.Claim{Routing: r, Asked: true, Any: true, Channel: req.One, Choose: d.choose, MaxBytes: d.room.content}
	left := 0
	if req.One {
		claim.Choose = func(p *schema.Peers, due []*schema.Item) (some []*schema.Item) {
			some, left = d.chooseOne(p, due)
			return some
		}
	}
	claimed, err := q.Claim(ctx, claim)
	if err != nil {
		return nil, err
	}
	var v schema.Verdict
	d.tell(&v, d.made(ctx, &claimed, directWarning{}))
	a.report.Ledger.Injected(&r, &v)
	if len(v.HookErrors) > 0 {
		a.opt.Logger.Warn("a part of the broker could not be drained", "agent", agent, "event_id", id, "errors", v.HookErrors)
	}
	answer := &schema.DrainAnswer{
		Fabric: a.fabric(), EventID: id, Content: oneMessage(&v), Injections: v.Injections, Workspaces: v.Workspaces, Remaining: claimed.More + left,
	}
	if req.One && answer.Content != "" && len(claimed.Items) == 1 {
		it := claimed.Items[0]
		answer.Matcher, answer.Sequence = it.Matcher, it.Sequence
		if it.Expiry > 0 {
			answer.ExpiresIn = max(1, it.Expiry-schema.Duration(time.Since(it.Accepted)))
		}
	}
	return answer, nil
}

// chooseOne takes the first item that some stage delivers. left counts the items due after it.
func (d *delivery) chooseOne(p *schema.Peers, due []*schema.Item) (one []*schema.Item, left int) {
	for i := range due {
		noted := p.Clone()
		if one = d.choose(&noted, due[i:i+1]); len(one) > 0 {
			*p = noted
			return one, len(due) - i - 1
		}
	}
	return nil, 0
}

// oneMessage returns a verdict's texts for the agent as one text.
func oneMessage(v *schema.Verdict) string {
	var parts []string
	if v.Restart != nil && v.Restart.Content != "" {
		parts = append(parts, v.Restart.Content)
	}
	for i := range v.Injections {
		if text := v.Injections[i].Content; text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// deliverers returns the delivery stages of an agent, one for each handler. Those of PostToolUse
// come before those that the agent has only at other events.
func (act *active) deliverers(agent string) (hooks []int) {
	known := make(map[string]bool)
	add := func(t schema.EventType) {
		for _, hook := range act.Stages(agent, t).Deliver {
			if handler := act.Config.Hooks[hook].Handler; !known[handler] {
				known[handler] = true
				hooks = append(hooks, hook)
			}
		}
	}
	add(schema.PostToolUse)
	for _, t := range schema.EventTypes() {
		if t.TakesDelivery() {
			add(t)
		}
	}
	return hooks
}

// fabric returns the id of the fabric that the broker serves now.
func (a *Aggregator) fabric() string {
	if act := a.config.active.Load(); act != nil && act.Config.Fabric != "" {
		return act.Config.Fabric
	}
	return a.opt.Fabric
}

// fetch reads a part of an object that an item for the agent names.
func (a *Aggregator) fetch(ctx context.Context, agent string, req *schema.FetchRequest) (*schema.FetchAnswer, error) {
	q, err := a.queue()
	if err != nil {
		return nil, err
	}
	store := a.opt.Memory.Objects
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
