package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/stats"
	"github.com/hookfabric/hookfabric/schema"
)

// What is measured of each site, in the order in which it is: what is put into
// the queue is taken out of it by the next line.
const (
	bare     = "bare KV write"
	plain    = "call, nothing waits"
	enqueue1 = "enqueue"
	claim    = "call that is given 1 item"
	claimed  = "the same, acknowledged"
	claim8   = "call that is given 8 items"
)

// many is how many callers there are where there is more than one.
const many = 16

// A step is one thing that is measured.
type step struct {
	name string
	do   Telling
	// hidden figures are a repetition of others.
	hidden bool
}

// steps are the n-th round: calls of so many callers. What was late in one step
// comes in no other one, as each has agents of its own.
func steps(n, callers, calls int) []step {
	telling := func(do, prefix string, items int) Telling {
		prefix = fmt.Sprintf("%s-%d-%d-", prefix, n, callers)
		return Telling{Do: do, Callers: callers, Calls: calls, Prefix: prefix, Agents: calls, Items: items}
	}
	eight := telling(Enqueue, "eight", 0)
	eight.Calls *= 8
	all := []step{
		{name: bare, do: telling(Put, "key", 0)},
		{name: plain, do: telling(ask, "none", 0)},
		{name: enqueue1, do: telling(Enqueue, "one", 0)},
		{name: claim, do: telling(ask, "one", 1)},
		{name: "again", do: telling(Enqueue, "ack", 0), hidden: true},
		{name: claimed, do: telling(askAndAck, "ack", 1)},
	}
	if callers > 1 {
		return all // that a call is given eight is no more load than that it is given one
	}
	return append(all, step{name: "eight", do: eight, hidden: true}, step{name: claim8, do: telling(ask, "eight", 8)})
}

// Speed is what one thing took at one site, the median over the repetitions.
type Speed struct {
	Site      string          `json:"site"`
	Name      string          `json:"name"`
	Callers   int             `json:"callers"`
	P50       schema.Duration `json:"p50"`
	P99       schema.Duration `json:"p99"`
	PerSecond float64         `json:"per_second"`
	// Late is the part of the calls that went on without what waited, because it
	// could not be taken along in time.
	Late float64 `json:"late,omitzero"`
}

// key is one figure of one site.
type key struct {
	site, name string
	callers    int
}

// speed measures all sites, in an order of its own in each repetition.
func (o *Options) speed(ctx context.Context, r *Report) (err error) {
	sites, err := o.sites(ctx)
	defer func() {
		for _, s := range sites {
			err = errors.Join(err, s.stop())
		}
	}()
	if err != nil {
		return err
	}
	seen := map[key][]Told{}
	for i := range o.repetitions() {
		order := rand.Perm(len(sites))
		for _, s := range order {
			for _, callers := range []int{1, many} {
				if err := o.round(ctx, sites[s], round{i, callers}, seen); err != nil {
					return err
				}
			}
		}
		o.say("speed: repetition %d of %d", i+1, o.repetitions())
	}
	for _, s := range sites {
		r.speeds(s.name, seen)
	}
	return nil
}

// sites are a broker of its own and a cluster, each syncing always and now and then.
func (o *Options) sites(ctx context.Context) (all []*site, err error) {
	for _, start := range []func() (*site, error){
		func() (*site, error) { return o.alone(ctx, "one server, sync always", 0) },
		func() (*site, error) { return o.alone(ctx, "one server, sync every second", relaxed) },
		func() (*site, error) { return o.cluster(ctx, "three servers, sync always", 0) },
		func() (*site, error) { return o.cluster(ctx, "three servers, sync every second", relaxed) },
	} {
		s, err := start()
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
	return all, nil
}

// round is which one it is, and with how many callers.
type round struct{ n, callers int }

func (o *Options) round(ctx context.Context, s *site, at round, seen map[key][]Told) error {
	if _, err := s.settle(ctx); err != nil {
		return err
	}
	calls := o.Calls
	if at.callers > 1 {
		calls *= 4
	}
	for _, step := range steps(at.n, at.callers, calls) {
		f, err := s.told(ctx, step.do)
		if err != nil {
			return fmt.Errorf("%q with %d callers: %w", step.name, at.callers, err)
		}
		if !step.hidden {
			k := key{s.name, step.name, at.callers}
			seen[k] = append(seen[k], f)
		}
	}
	return nil
}

// speeds adds the figures of a site, and the ratios between them.
func (r *Report) speeds(site string, seen map[key][]Told) {
	for _, step := range steps(0, 1, 1) {
		if step.hidden {
			continue
		}
		for _, callers := range []int{1, many} {
			all := seen[key{site, step.name, callers}]
			if len(all) == 0 {
				continue
			}
			r.Speed = append(r.Speed, Speed{
				Site: site, Name: step.name, Callers: callers,
				P50:       legible(stats.Median(p50s(all))),
				P99:       legible(stats.Median(each(all, func(f Told) float64 { return float64(f.P99) }))),
				PerSecond: stats.Median(each(all, func(f Told) float64 { return f.PerSecond })),
				Late:      tardy(all),
			})
		}
	}
	of := func(name string) []float64 { return p50s(seen[key{site, name, 1}]) }
	row := func(name string, ratio func(i int) float64) {
		ratios := make([]float64, len(of(plain)))
		for i := range ratios {
			ratios[i] = ratio(i)
		}
		r.ratio(bench.Row{Name: site + ": " + name, Callers: 1, Metric: "p50"}, ratios)
	}
	row("what 1 item adds to a call : bare KV write", func(i int) float64 { return (of(claim)[i] - of(plain)[i]) / of(bare)[i] })
	row("what 8 items add to a call : bare KV write", func(i int) float64 { return (of(claim8)[i] - of(plain)[i]) / of(bare)[i] })
	row("enqueue : bare KV write", func(i int) float64 { return of(enqueue1)[i] / of(bare)[i] })
}

// tardy is which part of all calls was late.
func tardy(all []Told) float64 {
	var late, calls int64
	for _, f := range all {
		late, calls = late+f.Late, calls+f.Calls
	}
	return float64(late) / float64(max(calls, 1))
}

func p50s(all []Told) []float64 {
	return each(all, func(f Told) float64 { return float64(f.P50) })
}

func each(all []Told, of func(Told) float64) []float64 {
	var values []float64
	for _, f := range all {
		values = append(values, of(f))
	}
	return values
}
