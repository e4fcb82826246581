package deliver

import (
	"context"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// DeliverNow delivers everything that the agent's stages would deliver at any event, at once and as one
// user message. It is for runtimes that accept messages only between turns. If only one is to come,
// it is the first one.
func (s *Deliverer) DeliverNow(ctx context.Context, act *stages.Config, r schema.Routing, one bool) (*schema.DrainAnswer, error) {
	s.Notice(&r, nil)
	hooks := act.Deliverers(r.Agent)
	if len(hooks) == 0 {
		return &schema.DrainAnswer{}, nil
	}
	d := s.newDelivery(act, hooks, s.room(0).half(), schema.Receiver{Routing: r, Round: s.Round(r.Agent)})
	claim := &queue.Claim{Routing: r, Asked: true, Any: true, Channel: one, Choose: d.choose, MaxBytes: d.room.content}
	left := 0
	if one {
		claim.Choose = func(p *schema.Peers, due []*schema.Item) (some []*schema.Item) {
			some, left = d.chooseOne(p, due)
			return some
		}
	}
	claimed, err := s.opt.Queue.Claim(ctx, claim)
	if err != nil {
		return nil, err
	}
	var v schema.Verdict
	d.addTo(&v, d.renderAll(ctx, &claimed, directWarning{}))
	s.opt.Report.Ledger.Injected(&r, &v)
	if len(v.HookErrors) > 0 {
		s.opt.Logger.Warn("a part of the broker could not be drained", "agent", r.Agent, "event_id", r.ID, "errors", v.HookErrors)
	}
	answer := &schema.DrainAnswer{Content: oneMessage(&v), Injections: v.Injections, Workspaces: v.Workspaces, Remaining: claimed.More + left}
	if one && answer.Content != "" && len(claimed.Items) == 1 {
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
