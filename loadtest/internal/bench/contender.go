package bench

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/account"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/schema"
)

// A Contender is one thing that is measured.
type Contender struct {
	Name string
	// Times is how often a repetition measures it; 0: once. A base is measured several
	// times, so that one bad moment does not affect all ratios.
	Times int
	// Measure measures it with a number of callers. With 0 callers it waits until the
	// answers are correct.
	Measure func(ctx context.Context, callers int) (Sample, error)
}

// A Sample is the result of one window.
type Sample struct {
	load.Figures
	// Costs are what one call takes of each process, by role.
	Costs map[string]Cost
	// Purposes is what the CPU time of one call is for, in seconds, without that of the requester; nil: unknown.
	Purposes map[account.Purpose]float64
}

// A Cost is what one call takes of a process. Other programs on the machine affect it
// less than times.
type Cost struct {
	// CPU is the time of processors, in the kernel too.
	CPU schema.Duration `json:"cpu"`
	// Allocations and Bytes are those on the heap.
	Allocations float64 `json:"allocations"`
	Bytes       float64 `json:"bytes"`
	// Waits is how often a thread gave up its processor to wait.
	Waits float64 `json:"waits"`
}

// Samples are the results of all repetitions, by the name of the contender and the number
// of callers.
type Samples map[string][]map[int]Sample

// Repeat measures each contender with each number of callers, in every repetition, in
// random order. A first repetition warms up and does not count, unless there is only one.
// If ctx interrupts it, it returns the complete repetitions, or an error without any.
func (o *Options) Repeat(ctx context.Context, times int, callers []int, all []Contender) (Samples, error) {
	o.Say("waiting until %d rows answer correctly", len(all))
	for _, c := range all {
		if _, err := c.Measure(ctx, 0); err != nil {
			return nil, fmt.Errorf("the row %q: %w", c.Name, err)
		}
	}
	samples, began := Samples{}, time.Now()
	for i := range times + 1 {
		if i == 0 && times == 1 {
			continue
		}
		one, err := repetition(ctx, callers, all)
		if err != nil && ctx.Err() != nil && i > 1 {
			break
		}
		if err != nil {
			return nil, err
		}
		if i == 0 {
			continue
		}
		for name, s := range one {
			samples[name] = append(samples[name], s)
		}
		o.Say("repetition %d of %d, %v", i, times, time.Since(began).Round(time.Second))
	}
	return samples, nil
}

func repetition(ctx context.Context, callers []int, all []Contender) (map[string]map[int]Sample, error) {
	var order []Contender
	for _, c := range all {
		for range max(c.Times, 1) {
			order = append(order, c)
		}
	}
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	several := map[string][]map[int]Sample{}
	for _, c := range order {
		one := map[int]Sample{}
		for _, n := range callers {
			s, err := c.Measure(ctx, n)
			if err != nil {
				return nil, fmt.Errorf("the row %q with %d callers: %w", c.Name, n, err)
			}
			one[n] = s
		}
		several[c.Name] = append(several[c.Name], one)
	}
	samples := map[string]map[int]Sample{}
	for name, s := range several {
		samples[name] = map[int]Sample{}
		for _, n := range callers {
			if samples[name][n] = s[0][n]; len(s) > 1 {
				samples[name][n] = middle(s, n)
			}
		}
	}
	return samples, nil
}

// Of returns one value of each repetition.
func (s Samples) Of(name string, callers int, value func(Sample) float64) []float64 {
	return values(s[name], callers, value)
}

func values(several []map[int]Sample, callers int, value func(Sample) float64) []float64 {
	all := make([]float64, len(several))
	for i, s := range several {
		all[i] = value(s[callers])
	}
	return all
}

// P50 reads the median of a sample, in seconds.
func P50(s Sample) float64 { return s.P50.Std().Seconds() }

// P99 reads the quantile 0.99 of a sample, in seconds.
func P99(s Sample) float64 { return s.P99.Std().Seconds() }

// PerSecond reads the throughput of a sample.
func PerSecond(s Sample) float64 { return s.PerSecond }

// CPUOf reads the CPU time that one call takes of a role, in seconds.
func CPUOf(role string) func(Sample) float64 {
	return func(s Sample) float64 { return s.Costs[role].CPU.Std().Seconds() }
}

// middle returns the medians of several samples.
func middle(several []map[int]Sample, callers int) Sample {
	of := func(value func(Sample) float64) float64 { return report.Median(values(several, callers, value)) }
	s := Sample{Costs: map[string]Cost{}}
	s.P50, s.P99, s.PerSecond = duration(of(P50)), duration(of(P99)), of(PerSecond)
	roles := map[string]bool{}
	for _, one := range several {
		s.Calls += one[callers].Calls
		for role := range maps.Keys(one[callers].Costs) {
			roles[role] = true
		}
	}
	for role := range roles {
		s.Costs[role] = Cost{
			CPU:         duration(of(CPUOf(role))),
			Allocations: of(func(s Sample) float64 { return s.Costs[role].Allocations }),
			Bytes:       of(func(s Sample) float64 { return s.Costs[role].Bytes }),
			Waits:       of(func(s Sample) float64 { return s.Costs[role].Waits }),
		}
	}
	return s
}

func duration(seconds float64) schema.Duration {
	return schema.Duration(math.Round(seconds * float64(time.Second)))
}
