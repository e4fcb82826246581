package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/stats"
	"github.com/hookfabric/hookfabric/schema"
)

// othersBudget is what a call may cost while items wait for others, next to the
// same call while none do.
const othersBudget = 1.1

// fillers is how many items are put into the queue at the same time while it is
// filled, and each agent gets so many of them.
const (
	fillers  = 64
	perAgent = 20
)

// Others is what items cost that wait for others.
type Others struct {
	// Items wait, for Agents.
	Items  int `json:"items"`
	Agents int `json:"agents"`
	// With and Without are a call's p50 with one caller and with many.
	With    []schema.Duration `json:"with"`
	Without []schema.Duration `json:"without"`
	// HeapPerItem and MemoryPerItem are what the broker's process takes more for
	// each item, in bytes: of its heap, and of the machine's memory; absent where
	// the system does not say.
	HeapPerItem   float64 `json:"heap_per_item"`
	MemoryPerItem float64 `json:"memory_per_item,omitzero"`
	// Start, StartAfterKill and StartEmpty are how long a broker takes until it
	// is ready: with the items after a stop and after a kill -9, and with none.
	Start          schema.Duration `json:"start"`
	StartAfterKill schema.Duration `json:"start_after_kill"`
	StartEmpty     schema.Duration `json:"start_empty"`
}

// others compares a broker that holds many items with one that holds none.
func (o *Options) others(ctx context.Context, r *Report) (err error) {
	full, err := o.alone(ctx, "full", relaxed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, full.stop()) }()
	empty, err := o.alone(ctx, "empty", 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.stop()) }()
	t := &Others{Items: o.Waiting, Agents: max(o.Waiting/perAgent, 1)}
	r.Others = t
	fill := Telling{Do: Enqueue, Callers: fillers, Calls: t.Items, Prefix: "other-", Agents: t.Agents}
	if _, err := full.told(ctx, fill); err != nil {
		return err
	}
	o.say("others: %d items wait", t.Items)
	if err := t.starts(ctx, full, empty); err != nil {
		return err
	}
	if err := o.compared(ctx, r, full, empty); err != nil {
		return err
	}
	return t.memory(ctx, full, empty)
}

// starts starts both brokers again, in all ways, the full one syncing always as
// the other one does.
func (t *Others) starts(ctx context.Context, full, empty *site) error {
	full.config.Sync = 0
	for _, s := range []struct {
		site *site
		end  func() error
		took *schema.Duration
	}{
		{full, full.broker.Stop, &t.Start},
		{full, func() error { return full.broker.Kill() }, &t.StartAfterKill},
		{empty, empty.broker.Stop, &t.StartEmpty},
	} {
		if err := s.end(); err != nil {
			return err
		}
		took, err := s.site.up(ctx)
		if err != nil {
			return err
		}
		*s.took = schema.Duration(took.Round(time.Millisecond))
	}
	return nil
}

// compared measures the same call at both, in turns.
func (o *Options) compared(ctx context.Context, r *Report, full, empty *site) error {
	call := func(s *site, callers int) (Told, error) {
		w := measure.Window{Callers: callers, Warm: schema.Duration(o.Window / 5), Long: schema.Duration(o.Window)}
		return s.told(ctx, Telling{Do: ask, Window: w, Prefix: "me-", Items: 0})
	}
	for _, callers := range []int{1, many} {
		var ratios, with, without []float64
		for range 2 * o.repetitions() {
			a, err := call(full, callers)
			if err != nil {
				return err
			}
			b, err := call(empty, callers)
			if err != nil {
				return err
			}
			ratios = append(ratios, float64(a.P50)/float64(b.P50))
			with, without = append(with, float64(a.P50)), append(without, float64(b.P50))
		}
		limit := othersBudget
		r.ratio(bench.Row{
			Name: fmt.Sprintf("%d items pending for others", r.Others.Items), Callers: callers, Metric: "p50", Budget: &limit,
		}.Slackened(o.Slack), ratios)
		r.Others.With = append(r.Others.With, legible(stats.Median(with)))
		r.Others.Without = append(r.Others.Without, legible(stats.Median(without)))
	}
	return nil
}

// memory compares what the two brokers hold.
func (t *Others) memory(ctx context.Context, full, empty *site) error {
	more, err := full.settle(ctx)
	if err != nil {
		return err
	}
	less, err := empty.settle(ctx)
	if err != nil {
		return err
	}
	n := float64(t.Items)
	t.HeapPerItem = (float64(more.Heap) - float64(less.Heap)) / n
	a, b := more.Resident, less.Resident
	if a > 0 && b > 0 {
		t.MemoryPerItem = (a - b) / n
	}
	return nil
}
