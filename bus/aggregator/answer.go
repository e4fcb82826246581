package aggregator

import (
	"cmp"
	"context"

	"github.com/hookfabric/hookfabric/schema"
)

// answerOf hands an agent's answer to the others of its session.
func (a *Aggregator) answerOf(ctx context.Context, agent string, req *schema.AnswerRequest) (*schema.AnswerReceipt, error) {
	q, err := a.queue()
	if err != nil {
		return nil, err
	}
	switch {
	case a.opt.Memory.Sessions == nil:
		return nil, unavailable("this broker keeps no sessions")
	case req.Session == "":
		return nil, badRequest("it is not said whose session it is; write session")
	case req.Content == "" && req.Object == nil:
		return nil, badRequest("the answer is empty; write content or object")
	case req.Content != "" && req.Object != nil:
		return nil, badRequest("the answer is there twice; write content or object")
	}
	if err := cmp.Or(a.sayable(ctx, req.Object), a.there(ctx, req.Snapshot)); err != nil {
		return nil, err
	}
	named, err := a.opt.Memory.Sessions.Name(ctx, req.Session, agent, req.Label)
	if err != nil {
		return nil, err
	}
	it := &schema.Item{
		Scope: schema.Scope{Session: req.Session}, Producer: answerProducer, Name: named.Label, Source: schema.SourcePeer,
		Strategy: schema.ToolResult, Content: req.Content, Object: req.Object, LateJoiners: true, Except: agent,
		Answer: &schema.PeerAnswer{Name: named.Name, Label: named.Label, Workspace: req.Workspace, Snapshot: req.Snapshot},
	}
	if err := a.outsource(ctx, it); err != nil {
		return nil, err
	}
	receipt, err := q.Enqueue(ctx, it)
	if err != nil {
		return nil, err
	}
	if !receipt.Duplicate {
		a.answered(ctx, q, agent)
	}
	return &schema.AnswerReceipt{Receipt: receipt, Name: named.Name, Label: named.Label}, nil
}

// answered counts an agent's own answers. The answer is accepted by then, whatever
// comes of that.
func (a *Aggregator) answered(ctx context.Context, q Queue, agent string) {
	note := func(ctx context.Context) error {
		return q.Note(ctx, agent, func(p *schema.Peers) { p.Answers++ })
	}
	if err := note(ctx); err != nil {
		a.background(note)
	}
}
