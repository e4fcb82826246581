package control

import (
	"cmp"
	"context"
	"errors"

	"github.com/hookfabric/hookfabric/bus/aggregator/internal/intake"
	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/sessions"
	"github.com/hookfabric/hookfabric/schema"
)

// answerOf hands an agent's own answer to the others of its session, within its allowance.
func (c *Control) answerOf(ctx context.Context, agent string, req *schema.AnswerRequest) (*schema.AnswerReceipt, error) {
	if err := c.credible(ctx, agent, req); err != nil {
		return nil, err
	}
	return c.handOn(ctx, agent, agent, req)
}

// credible returns nil if other agents may trust the origin of an answer. The agent must take part
// in the session, and its label must not be a reserved name. Without credentials on the bus,
// credible does not check the session.
func (c *Control) credible(ctx context.Context, agent string, req *schema.AnswerRequest) error {
	all := c.opt.Sessions
	name, reserved := sessions.Reserved(req.Label)
	switch {
	case reserved:
		return badRequest("the label %.80q has a name that agents may not use: %s; write a label such as agent2.1, or leave it out", req.Label, name)
	case all == nil || !c.opt.Credentials || req.Session == "":
		return nil
	}
	in, err := all.TakesPart(ctx, agent, req.Session)
	if err != nil {
		return err
	}
	if !in {
		return badRequest("the agent %.80q does not take part in the session %.80q, because it sent no event of it lately; send an event of that session first, "+
			"or let an operator or orchestrator run 'broker answer'", agent, req.Session)
	}
	if name == "" || name == agent {
		return nil
	}
	if taken, err := all.IsAgent(ctx, name); err != nil || !taken {
		return err
	}
	return badRequest("the label %.80q has another agent's id as its name; write a label with another name, or leave it out", req.Label)
}

// relay is answerOf for an operator or orchestrator that answers on behalf of the agent.
func (c *Control) relay(ctx context.Context, agent string, req *schema.AnswerRequest) (*schema.AnswerReceipt, error) {
	return c.handOn(ctx, agent, "", req)
}

// handOn delivers an agent's answer to the other agents of its session. The author is the agent if
// it sent the answer itself; empty: another client sent it.
func (c *Control) handOn(ctx context.Context, agent, author string, req *schema.AnswerRequest) (*schema.AnswerReceipt, error) {
	q, err := c.queue()
	if err != nil {
		return nil, err
	}
	switch {
	case c.opt.Sessions == nil:
		return nil, unavailable("this broker does not store sessions")
	case req.Session == "":
		return nil, badRequest("session is missing; name the session")
	case req.Content == "" && req.Object == nil:
		return nil, badRequest("the answer is empty; send content or object")
	case req.Content != "" && req.Object != nil:
		return nil, badRequest("the answer has both content and object; send one of them")
	}
	if err := cmp.Or(c.sayable(ctx, req.Object), c.there(ctx, req.Snapshot)); err != nil {
		return nil, err
	}
	it := &schema.Item{
		Scope: schema.Scope{Session: req.Session}, Producer: answerProducer, Name: req.Label, Source: schema.SourcePeer,
		Strategy: schema.ToolResult, Content: req.Content, Object: req.Object, LateJoiners: true, Except: agent, Author: author,
	}
	if err := c.mayAnswer(ctx, q, it); err != nil {
		return nil, c.counted(author, err)
	}
	named, err := c.opt.Sessions.Name(ctx, req.Session, agent, req.Label)
	if err != nil {
		return nil, err
	}
	it.Name = named.Label
	it.Answer = &schema.PeerAnswer{Name: named.Name, Label: named.Label, Workspace: req.Workspace, Snapshot: req.Snapshot}
	if err := c.outsource(ctx, it); err != nil {
		return nil, c.counted(author, err)
	}
	receipt, err := q.Enqueue(ctx, it)
	if err != nil {
		return nil, c.counted(author, err)
	}
	if !receipt.Duplicate {
		// The queue has accepted the answer, so a failure to count it changes nothing.
		_ = c.opt.Life.TryWrite(ctx, func(ctx context.Context) error {
			return q.Note(ctx, agent, req.Session, func(p *schema.Peers) { p.Answers++ })
		})
	}
	return &schema.AnswerReceipt{Receipt: receipt, Name: named.Name, Label: named.Label}, nil
}

// mayAnswer returns nil if the author of an answer has room for it, before anything of it is
// stored.
func (c *Control) mayAnswer(ctx context.Context, q stores.Queue, it *schema.Item) error {
	if it.Author == "" {
		return nil
	}
	if err := q.Allows(it); err != nil {
		return err
	}
	return c.opt.Sessions.Room(ctx, c.shared())
}

// shared returns the percentage of the shared room that agents may fill.
func (c *Control) shared() int { return 100 - c.opt.Allowances.Reserve }

// counted counts an agent's request that an allowance or the reserve refused. An empty author means
// that the agent did not send the request.
func (c *Control) counted(author string, err error) error {
	switch {
	case author == "":
	case errors.Is(err, queue.ErrAllowance):
		c.opt.Limits.Refused(author, intake.LimitAnswers)
	case errors.Is(err, queue.ErrFull), errors.Is(err, objects.ErrFull), errors.Is(err, sessions.ErrNoRoom):
		c.opt.Limits.Refused(author, intake.LimitReserve)
	}
	return err
}
