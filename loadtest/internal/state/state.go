package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
)

// The checks of deliveries and broadcasts.
const (
	oneDelivery = "a call that delivers items writes once, for any number of items"
	oneWrite    = "a broadcast is one write, and reaches every agent once"
)

const (
	// fillers is the number of concurrent requests that fill a queue, perAgent the number
	// of items of each agent in it.
	fillers  = 64
	perAgent = 20
	// takers is the number of calls whose writes are counted.
	takers = 50
	// lease is the longest time for the last deliveries: an earlier lease may have to end first.
	lease = 45 * time.Second
)

// A run is the parts of one run, and what they report.
type run struct {
	bench.Options
	report *bench.Report
	number atomic.Int64 // makes agents that no other measurement uses
}

// Parts returns the names of the parts.
func Parts() []string { return []string{"speed", "others", "given", "broadcast"} }

// Run measures the parts.
func Run(ctx context.Context, o bench.Options) (*bench.Report, error) {
	r := &run{Options: o, report: &bench.Report{Window: o.Milliseconds(300, 50)}}
	var parts []bench.Part
	for i, part := range []func(context.Context) error{r.speed, r.others, r.given, r.broadcast} {
		parts = append(parts, bench.Part{Name: Parts()[i], Run: part})
	}
	return r.report, o.Run(ctx, &r.report.Document, parts)
}

// A step is one thing that speed measures at each site.
type step struct {
	name string
	do   roles.QueueRequest
	// before and after are not measured: what the calls need, and what they leave.
	before, after string
	items         int
}

const (
	bare  = "bare KV write"
	plain = "call, nothing waits"
	put   = "enqueue"
	claim = "call that is given 1 item"
	eight = "call that is given 8 items"
)

func steps() []step {
	return []step{
		{name: bare, do: roles.QueueRequest{Do: roles.Put}},
		{name: plain, do: roles.QueueRequest{Do: roles.Ask}},
		{name: put, do: roles.QueueRequest{Do: roles.Enqueue}, after: roles.Ask, items: 1},
		{name: claim, do: roles.QueueRequest{Do: roles.Ask, Items: 1}, before: roles.Enqueue, items: 1},
		{name: "call that is given 1 item, acknowledged", do: roles.QueueRequest{Do: roles.AskAndAck, Items: 1}, before: roles.Enqueue, items: 1},
		{name: eight, do: roles.QueueRequest{Do: roles.Ask, Items: 8}, before: roles.Enqueue, items: 8},
	}
}

// speed measures the steps at a broker of its own and at a cluster, each with both syncs.
func (r *run) speed(ctx context.Context) (err error) {
	var sites []*site
	defer func() {
		for _, s := range sites {
			err = errors.Join(err, s.Stop())
		}
	}()
	var all []bench.Contender
	var lines []bench.Line
	for _, start := range []func() (*site, error){
		func() (*site, error) { return r.alone(ctx, "one server, sync always", 0) },
		func() (*site, error) { return r.alone(ctx, "one server, sync every second", relaxed) },
		func() (*site, error) { return r.cluster(ctx, "three servers, sync always", 0) },
		func() (*site, error) { return r.cluster(ctx, "three servers, sync every second", relaxed) },
	} {
		s, err := start()
		if err != nil {
			return err
		}
		sites = append(sites, s)
		named := func(name string) string { return s.name + ": " + name }
		for _, step := range steps() {
			all = append(all, bench.Contender{Name: named(step.name), Measure: func(ctx context.Context, callers int) (bench.Sample, error) {
				return r.take(ctx, s, step, callers)
			}})
		}
		lines = append(lines,
			bench.Line{Name: named("what 1 item adds to a call : bare KV write"), Of: named(claim), Less: named(plain), By: named(bare), Cells: 1},
			bench.Line{Name: named("what 8 items add to a call : bare KV write"), Of: named(eight), Less: named(plain), By: named(bare), Cells: 1},
			bench.Line{Name: named("enqueue : bare KV write"), Of: named(put), By: named(bare), Cells: 1})
	}
	callers := []int{1, bench.Many}
	samples, err := r.Repeat(ctx, r.Times(10, 1), callers, all)
	if err != nil {
		return err
	}
	r.report.Compare(&r.Options, samples, lines)
	r.report.Show(samples, callers, all)
	return nil
}

// take measures a step, with agents of its own.
func (r *run) take(ctx context.Context, s *site, st step, callers int) (bench.Sample, error) {
	if callers == 0 {
		return bench.Sample{}, nil
	}
	calls := bench.Pick(&r.Options, 200, 16)
	if st.items > 1 {
		calls /= 4
	}
	if callers > 1 && st.items <= 1 {
		calls *= 4
	}
	q := st.do
	q.Callers, q.Calls, q.Agents, q.Prefix = callers, calls, calls, fmt.Sprintf("speed-%d-", r.number.Add(1))
	hidden := func(do string) error {
		if do == "" {
			return nil
		}
		h := q
		h.Do, h.Items, h.Calls = do, st.items, calls*st.items
		_, err := s.ask(ctx, h)
		return err
	}
	if _, err := bench.Settle(ctx, s.Broker); err != nil {
		return bench.Sample{}, err
	}
	if err := hidden(st.before); err != nil {
		return bench.Sample{}, err
	}
	told, err := s.ask(ctx, q)
	if err != nil {
		return bench.Sample{}, err
	}
	return bench.Sample{Figures: told.Figures}, hidden(st.after)
}

// others compares a broker whose queue holds many items of other agents with one whose
// queue is empty.
func (r *run) others(ctx context.Context) (err error) {
	full, err := r.alone(ctx, "full", relaxed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, full.Stop()) }()
	empty, err := r.alone(ctx, "empty", relaxed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.Stop()) }()
	items := bench.Pick(&r.Options, 100_000, 500)
	if _, err := full.ask(ctx, roles.QueueRequest{Do: roles.Enqueue, Callers: fillers, Calls: items, Prefix: "other-", Agents: items / perAgent}); err != nil {
		return err
	}
	r.Say("others: %d items wait", items)
	var all []bench.Contender
	for _, s := range []*site{full, empty} {
		all = append(all, bench.Contender{Name: s.name, Times: 2, Measure: func(ctx context.Context, callers int) (bench.Sample, error) {
			if callers == 0 {
				return bench.Sample{}, nil
			}
			w := load.Window{Callers: callers, Warm: r.report.Window / 5, Long: r.report.Window}
			told, err := s.ask(ctx, roles.QueueRequest{Do: roles.Ask, Window: w, Prefix: "me-"})
			return bench.Sample{Figures: told.Figures}, err
		}})
	}
	callers := []int{1, bench.Many}
	samples, err := r.Repeat(ctx, r.Times(10, 1), callers, all)
	if err != nil {
		return err
	}
	r.report.Compare(&r.Options, samples, []bench.Line{{
		Name: fmt.Sprintf("%d items pending for others", items), Of: full.name, By: empty.name, Limits: bench.Limits{P50: bench.PendingForOthers, P50Many: bench.PendingForOthers},
	}})
	r.report.Show(samples, callers, all)
	return nil
}

// given counts the writes of calls that deliver one item, and of calls that deliver several.
func (r *run) given(ctx context.Context) (err error) {
	s, err := r.alone(ctx, "given", relaxed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	for _, items := range []int{1, 8} {
		q := roles.QueueRequest{Do: roles.Take, Callers: 1, Calls: takers, Prefix: fmt.Sprintf("given-%d-", items), Agents: takers}
		fill := q
		fill.Do, fill.Calls = roles.Enqueue, items*takers
		// The first call of an agent writes that it was seen.
		for _, before := range []roles.QueueRequest{q, fill} {
			if _, err := s.ask(ctx, before); err != nil {
				return err
			}
		}
		late := int64(0)
		writes, err := s.writes(ctx, func() error {
			q.Items = items
			told, err := s.ask(ctx, q)
			late = told.Late
			return err
		})
		if err != nil {
			return err
		}
		if late > 0 {
			return fmt.Errorf("%d of %d calls continued without the waiting items", late, q.Calls)
		}
		judge(&r.report.Document, oneDelivery, takers, writes == takers, fmt.Sprintf("%d calls that delivered %d items each took %d writes", takers, items, writes))
	}
	return nil
}

// broadcast makes many agents known, and sends one item to all of them.
func (r *run) broadcast(ctx context.Context) (err error) {
	s, err := r.alone(ctx, "broadcast", relaxed) // the writes are counted, not timed
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	agents := bench.Pick(&r.Options, 10_000, 50)
	everyone := roles.QueueRequest{Do: roles.Ask, Callers: bench.Many, Calls: agents, Prefix: "crowd-", Agents: agents}
	if _, err := s.ask(ctx, everyone); err != nil {
		return err
	}
	writes, err := s.writes(ctx, func() error {
		_, err := s.ask(ctx, roles.QueueRequest{Do: roles.Broadcast, Callers: 1, Calls: 1})
		return err
	})
	if err != nil {
		return err
	}
	everyone.Items, everyone.Once = 1, true
	reached := 0
	// A call continues without an item that it cannot read in time; the next one delivers it.
	for end := time.Now().Add(lease); reached < agents && time.Now().Before(end); load.Pause(ctx, settling) {
		told, err := s.ask(ctx, everyone)
		if err != nil {
			return err
		}
		reached = int(told.Calls - told.Late)
		r.Say("broadcast: delivered to %d of %d agents", reached, agents)
	}
	judge(&r.report.Document, oneWrite, agents, writes == 1 && reached == agents, fmt.Sprintf("%d writes for %d agents, of which %d received it", writes, agents, reached))
	_, err = s.ask(ctx, everyone) // an error if an agent receives it twice
	return err
}

// judge adds what a part showed of a check.
func judge(d *report.Document, name string, seen int, ok bool, example string) {
	c := d.Check(name)
	c.Seen, c.Least = c.Seen+int64(seen), 1
	if !ok && !slices.Contains(c.Examples, example) {
		c.Fail(example)
	}
}
