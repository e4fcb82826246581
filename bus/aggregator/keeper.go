package aggregator

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// RoundProducer is the producer of the warnings that a round's time is over. Each
// has the revision of its round's start as its number, so that there is one per
// round however many brokers notice. When it was acknowledged, that has to be
// told to the rounds.
const RoundProducer = "round"

// keepEvery is about how often it is looked whose time is over.
const keepEvery = time.Second

// warned are the rounds whose agents were warned by this broker, for as long as
// they have not heard of it: to warn again changes nothing, but costs a write.
type warned struct {
	mu    sync.Mutex
	start map[string]uint64 // the rounds' starts, by agent; guarded by mu
}

func (w *warned) has(r *schema.Round) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.start[r.Agent] == r.Start
}

func (w *warned) add(r *schema.Round) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.start == nil {
		w.start = make(map[string]uint64)
	}
	w.start[r.Agent] = r.Start
}

// only forgets all rounds but these, so that there are never more than are due.
func (w *warned) only(due []schema.Round) {
	w.mu.Lock()
	defer w.mu.Unlock()
	start := make(map[string]uint64, len(w.start))
	for i := range due {
		if r := &due[i]; w.start[r.Agent] == r.Start {
			start[r.Agent] = r.Start
		}
	}
	w.start = start
}

// keep warns agents whose time is over, also those that do nothing.
func (a *Aggregator) keep() {
	for kv.Rest(a.life.ctx, keepEvery*3/4+rand.N(keepEvery/2)) == nil {
		act := a.config.active.Load()
		if act == nil {
			continue
		}
		due := a.opt.Memory.Rounds.SoftDue()
		a.memory.warned.only(due)
		for i := range due {
			if a.life.ctx.Err() != nil {
				return
			}
			if r := &due[i]; !a.memory.warned.has(r) && act.warnsAgent(r.Agent) {
				ctx, cancel := context.WithTimeout(a.life.ctx, ackTime)
				a.warn(ctx, act, r, "")
				cancel()
			}
		}
	}
}

// warn puts the warning that a round's time is over into its agent's queue. It returns the
// warning if the queue has no room for it: then it has to go out with the verdict about an event,
// or once more with the same one.
func (a *Aggregator) warn(ctx context.Context, act *active, r *schema.Round, event string) (direct *schema.Item) {
	if a.opt.Memory.Queue == nil || a.memory.warned.has(r) {
		return nil
	}
	by, age := a.opt.Memory.Rounds.Warning(r.Agent)
	if by != "" && by != event && age < queue.LeaseFor {
		return nil // its acknowledgement may be under way
	}
	it := &schema.Item{
		Scope: schema.Scope{Agent: r.Agent}, Producer: RoundProducer, Number: r.Start,
		Source: schema.SourceTimeout, Strategy: schema.ToolResult,
		TimeLimit: &schema.TimeLimit{
			Round: r.Number, Limit: r.Limit(), Elapsed: r.Elapsed, Grace: r.Grace, WrapUp: r.WrapUp, Terminal: act.terminal(r.Agent),
		},
	}
	receipt, err := a.opt.Memory.Queue.Enqueue(ctx, it)
	if err != nil {
		a.report.Log.Unreachable(observe.QueueStore, err)
		if errors.Is(err, queue.ErrFull) {
			it.Sequence = directFrom + r.Start
			return it
		}
		return nil
	}
	a.memory.warned.add(r)
	if !receipt.Duplicate && by == "" {
		a.softOver(r)
	}
	return nil
}

// softOver counts and logs that an agent is warned.
func (a *Aggregator) softOver(r *schema.Round) {
	a.report.Ledger.Soft.Inc()
	a.opt.Logger.Info("the time of a round is over", "agent", r.Agent, "round", r.Number, "elapsed", r.Elapsed.Std(), "wrap_up", r.WrapUp)
}

// warns reports whether a plan hands over that a round's time is over.
func (act *active) warns(plan *dispatch.Plan) bool {
	for _, hook := range plan.Deliver {
		if act.Config.Hooks[hook].Handler == schema.RoundTimeoutPost && act.stages[hook].delivery != nil {
			return true
		}
	}
	return false
}

// warnsAgent reports whether some plan of the agent does, whatever the tool.
func (act *active) warnsAgent(agent string) bool {
	for _, t := range schema.EventTypes() {
		if t.TakesDelivery() && act.warns(act.Stages(agent, t)) {
			return true
		}
	}
	return false
}

// terminal are the tools that an agent's gate never refuses, as far as it says so.
func (act *active) terminal(agent string) []string {
	for _, hook := range act.Stages(agent, schema.PreToolUse).Gates {
		if t, ok := act.stages[hook].gate.(Terminator); ok {
			return t.Terminal()
		}
	}
	return nil
}
