package deliver

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator/internal/lifetime"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/schema"
)

// RoundProducer is the producer of the warnings that a round's time is over. Each has the revision
// of its round's start as its number, so that a round has one warning however many brokers notice.
// The aggregator reports its acknowledgement to the rounds.
const RoundProducer = "round"

// keepEvery is about how often the aggregator looks for rounds whose time is over.
const keepEvery = time.Second

// isWarned reports whether this broker warned the agent of a round, and does not know yet that it
// received the warning. To repeat a warning changes nothing, but costs a write.
func (s *Deliverer) isWarned(r *schema.Round) bool {
	start, ok := s.warned.Load(r.Agent)
	return ok && start == r.Start
}

// forgetWarned forgets all rounds but these, so that there are never more than are due.
func (s *Deliverer) forgetWarned(due []schema.Round) {
	starts := make(map[any]any, len(due))
	for i := range due {
		starts[due[i].Agent] = due[i].Start
	}
	s.warned.Range(func(agent, start any) bool {
		if starts[agent] != start {
			s.warned.Delete(agent)
		}
		return true
	})
}

// keep warns the agents whose time is over, also idle ones.
func (s *Deliverer) keep() {
	for kv.Rest(s.opt.Life.Context(), keepEvery*3/4+rand.N(keepEvery/2)) == nil {
		act := s.opt.Active()
		if act == nil {
			continue
		}
		due := s.opt.Rounds.SoftDue()
		s.forgetWarned(due)
		for i := range due {
			if s.opt.Life.Context().Err() != nil {
				return
			}
			if r := &due[i]; !s.isWarned(r) && act.WarnsAgent(r.Agent) {
				ctx, cancel := context.WithTimeout(s.opt.Life.Context(), lifetime.WriteTime)
				s.Warn(ctx, act, r, "")
				cancel()
			}
		}
	}
}

// Warn puts the warning that a round's time is over into its agent's queue. If the queue has no
// room, Warn returns the warning. It then has to go out with the verdict about event, or again with
// the same event.
func (s *Deliverer) Warn(ctx context.Context, act *stages.Config, r *schema.Round, event string) (direct *schema.Item) {
	if s.opt.Queue == nil || s.isWarned(r) {
		return nil
	}
	by, age := s.opt.Rounds.Warning(r.Agent)
	if by != "" && by != event && age < queue.LeaseFor {
		return nil // its acknowledgement may be under way
	}
	it := &schema.Item{
		Scope: schema.Scope{Agent: r.Agent}, Producer: RoundProducer, Number: r.Start,
		Source: schema.SourceTimeout, Strategy: schema.ToolResult,
		TimeLimit: &schema.TimeLimit{
			Round: r.Number, Limit: r.Limit(), Elapsed: r.Elapsed, Grace: r.Grace, WrapUp: r.WrapUp, Terminal: act.Terminal(r.Agent),
		},
	}
	receipt, err := s.opt.Queue.Enqueue(ctx, it)
	if err != nil {
		s.opt.Report.Log.Unreachable(observe.QueueStore, err)
		if errors.Is(err, queue.ErrFull) {
			it.Sequence = directFrom + r.Start
			return it
		}
		return nil
	}
	s.warned.Store(r.Agent, r.Start)
	if !receipt.Duplicate && by == "" {
		s.softOver(r)
	}
	return nil
}

// softOver counts and logs that an agent is warned.
func (s *Deliverer) softOver(r *schema.Round) {
	s.opt.Report.Ledger.Soft.Inc()
	s.opt.Logger.Info("the time of a round is over", "agent", r.Agent, "round", r.Number, "elapsed", r.Elapsed.Std(), "wrap_up", r.WrapUp)
}

// A round's hard limit begins when its warning was delivered, and must not depend on room in the
// queue. If the queue has no room, the warning goes out with the verdict of the agent's next event
// that can carry it, and again after a lease without an acknowledgement. The acknowledgement of
// that event starts the grace period. The round's record names the event, so that only one of
// several brokers warns, and any of them accepts the acknowledgement.

// directFrom is added to a round's start for the sequence of such a warning. Shims acknowledge
// injections with a sequence, and drop repeated ones. No item has a sequence this large, and a JSON
// number can hold it.
const directFrom = 1 << 52

// A directWarning is the warning of a round that found no room in the queue. A nil *directWarning
// means that no such warning is due.
type directWarning struct {
	item  *schema.Item
	round *schema.Round
}

// bringsWarning notes that the verdict about an event brings the warning of a round, and reports
// whether it may.
func (s *Deliverer) bringsWarning(ctx context.Context, r *schema.Round, event string) bool {
	may, first, err := s.opt.Rounds.Warn(ctx, r.Agent, rounds.Warning{Start: r.Start, Event: event, Lease: queue.LeaseFor})
	if err != nil {
		s.opt.Logger.Warn("the delivery of a round's warning could not be stored; the warning comes with a later event", "agent", r.Agent, "event_id", event, "error", err)
	}
	if first {
		s.softOver(r)
	}
	return may
}

// takes offers a warning to the stages in addition to the claimed items, and reports whether one
// takes it.
func (d *delivery) takes(warning *schema.Item) bool {
	for _, hook := range d.hooks {
		p := d.to.Peers.Clone()
		if d.act.Hook(hook).Handler == schema.RoundTimeoutPost && len(d.chosen(hook, &p, []*schema.Item{warning})) > 0 {
			d.by[warning.Sequence] = hook
			return true
		}
	}
	return false
}
