package fleet

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// limitKept is a promise about runaway agents. Other promises cover the calls of all other
// agents.
const limitKept = "runaway agents were refused their calls over the limit, and no others"

// A wild agent repeatedly asks whether it may use a guarded tool. No figure includes its
// calls; only the verdicts are checked.
type wild struct {
	*agent
	every time.Duration
	until time.Time
	// judged and limited count its calls by result.
	judged, limited atomic.Int64
	first           atomic.Int64 // when its first call began, as Unix time in nanoseconds
}

// runaways runs the runaway agents during the load.
func (d *driver) runaways(ctx context.Context) {
	r := d.Scenario.Runaway
	if d.First > 0 || d.Again {
		return // only the first driver runs them
	}
	begin := time.Unix(0, d.Begin)
	for i := range r.Agents {
		w := &wild{every: time.Duration(float64(time.Second) / (r.Limit * r.Times)), until: begin.Add(d.Curve.Long())}
		w.agent = &agent{
			driver: d, name: fmt.Sprintf("wild-%s-%d", d.Tag, i), c: d.clients[i%len(d.clients)],
			random: rand.New(rand.NewPCG(d.Scenario.Seed, math.MaxUint64-uint64(i))),
		}
		d.wild = append(d.wild, w)
		w.again(ctx, begin)
	}
}

// again schedules the next call, and each one after it.
func (w *wild) again(ctx context.Context, due time.Time) {
	if due.After(w.until) {
		return
	}
	c := w.mix.fill(&call{class: remote}, w.random, w.random.Uint64()&^1)
	w.schedule.Add(due, func(due time.Time, sent bool) {
		w.again(ctx, due.Add(w.every))
		if sent {
			w.call(ctx, c)
		}
	})
}

// call sends one event and checks its verdict.
func (w *wild) call(ctx context.Context, c *call) {
	began := time.Now()
	w.first.CompareAndSwap(0, began.UnixNano())
	v, err := w.send(ctx, c.before(), began)
	if err != nil {
		return // the call may have been killed, or cut off, with all others
	}
	if w.oracle.runaway(c, v) {
		w.limited.Add(1)
	} else {
		w.judged.Add(1)
	}
}

// runaway checks a verdict for a runaway agent, and reports whether the call was refused
// because of the limit.
func (o *oracle) runaway(c *call, v *schema.Verdict) (limited bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ran := slices.DeleteFunc(slices.Clone(v.ExecutedHooks), func(h schema.ExecutedHook) bool { return slices.Contains(stages(), h.Hook) })
	limited = slices.ContainsFunc(ran, func(h schema.ExecutedHook) bool {
		return h.Hook == guard && h.Outcome == schema.Busy && strings.Contains(h.Error, "--agent-rate")
	})
	o.decision(c, v, ran)
	return limited
}

// limits compares the results of all calls of runaway agents with their limit.
func (d *driver) limits() {
	for _, w := range d.wild {
		judged, limited := w.judged.Load(), w.limited.Load()
		if judged+limited == 0 {
			continue // it made no call
		}
		r, brokers := d.Scenario.Runaway, max(1, d.Scenario.Fabric.Brokers)
		took := time.Since(time.Unix(0, w.first.Load())).Seconds()
		most := float64(brokers) * (float64(r.Burst()) + r.Limit*took)
		d.oracle.mu.Lock()
		d.oracle.hold(limitKept, faultIf(float64(judged) > most || limited == 0,
			"%s sent %d events in %.1f s: %d were judged and %d refused, but at most %.0f may be judged", w.name, judged+limited, took, judged, limited, most))
		d.oracle.mu.Unlock()
	}
}
