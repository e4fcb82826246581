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

// RoundProducer is the producer of the warnings that a round's time is over. Each has the revision
// of its round's start as its number, so that a round has one warning however many brokers notice.
// The aggregator reports its acknowledgement to the rounds.
const RoundProducer = "round"

// keepEvery is about how often the aggregator looks for rounds whose time is over.
const keepEvery = time.Second

// warned holds the rounds whose agents this broker warned, until the agents received the warning.
// To repeat a warning changes nothing, but costs a write.
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

// keep warns the agents whose time is over, also idle ones.
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

// warn puts the warning that a round's time is over into its agent's queue. If the queue has no
// room, warn returns the warning. It then has to go out with the verdict about event, or again with
// the same event.
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

// warns reports whether a plan has a stage that delivers the warning of a round.
func (act *active) warns(plan *dispatch.Plan) bool {
	for _, hook := range plan.Deliver {
		if act.Config.Hooks[hook].Handler == schema.RoundTimeoutPost && act.stages[hook].delivery != nil {
			return true
		}
	}
	return false
}

// warnsAgent reports whether some plan of the agent has a stage that warns, for any tool.
func (act *active) warnsAgent(agent string) bool {
	for _, t := range schema.EventTypes() {
		if t.TakesDelivery() && act.warns(act.Stages(agent, t)) {
			return true
		}
	}
	return false
}

// terminal returns the tools that the agent's gate never refuses, if the gate names them.
func (act *active) terminal(agent string) []string {
	for _, hook := range act.Stages(agent, schema.PreToolUse).Gates {
		if t, ok := act.stages[hook].gate.(Terminator); ok {
			return t.Terminal()
		}
	}
	return nil
}
