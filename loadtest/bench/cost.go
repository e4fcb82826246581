package bench

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/stats"
	"github.com/hookfabric/hookfabric/schema"
)

// A Cost is what one call takes of a process. It is what to work by where
// others use the machine: their load bends times on the clock, and hardly this.
type Cost struct {
	// CPU is the time of processors, in the kernel too.
	CPU schema.Duration `json:"cpu"`
	// Allocations and Bytes are what is put on the heap.
	Allocations float64 `json:"allocations"`
	Bytes       float64 `json:"bytes"`
	// Waits is how often a thread gave up its processor to wait.
	Waits float64 `json:"waits"`
}

// figures are what a window showed, with what a call took of each process.
type figures struct {
	measure.Figures
	costs map[string]Cost
}

// perCall is what one of so many calls took.
func perCall(u measure.Used, calls int64) Cost {
	n := float64(max(calls, 1))
	return Cost{
		CPU:         schema.Duration(float64(u.CPU) / n),
		Allocations: float64(u.Allocations) / n, Bytes: float64(u.Bytes) / n, Waits: float64(u.Waits) / n,
	}
}

// medianCosts are what calls took of each process, by the medians.
func medianCosts(several []map[string]Cost) map[string]Cost {
	all := map[string]Cost{}
	for _, costs := range several {
		maps.Copy(all, costs)
	}
	for name := range all {
		of := func(what func(Cost) float64) float64 {
			var some []float64
			for _, costs := range several {
				some = append(some, what(costs[name]))
			}
			return stats.Median(some)
		}
		all[name] = Cost{
			CPU:         schema.Duration(of(func(c Cost) float64 { return float64(c.CPU) })),
			Allocations: of(func(c Cost) float64 { return c.Allocations }),
			Bytes:       of(func(c Cost) float64 { return c.Bytes }),
			Waits:       of(func(c Cost) float64 { return c.Waits }),
		}
	}
	return all
}

// total is what all processes take together.
func total(costs map[string]Cost) (sum Cost) {
	// In one order: sums of floats depend on it.
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		c := costs[name]
		sum.CPU += c.CPU
		sum.Allocations += c.Allocations
		sum.Bytes += c.Bytes
		sum.Waits += c.Waits
	}
	return sum
}

// involved leaves out the processes that have nothing to do with a call: what
// an idle one does beside it is next to nothing.
func involved(costs map[string]Cost) map[string]Cost {
	const share = 50
	sum, some := total(costs), map[string]Cost{}
	for name, c := range costs {
		if c.CPU > sum.CPU/share {
			c.CPU = legible(c.CPU)
			c.Allocations, c.Bytes, c.Waits = math.Round(c.Allocations), math.Round(c.Bytes), math.Round(10*c.Waits)/10
			some[name] = c
		}
	}
	return some
}

// listed is one figure of all processes in a table for people, the sum first.
func listed(costs map[string]Cost, figure func(Cost) string) string {
	parts := make([]string, 0, len(costs))
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		parts = append(parts, name+" "+figure(costs[name]))
	}
	return fmt.Sprintf("%s (%s)", figure(total(costs)), strings.Join(parts, ", "))
}

func microseconds(c Cost) string { return fmt.Sprintf("%.1f", float64(c.CPU)/1000) }
func allocations(c Cost) string  { return fmt.Sprintf("%.0f", c.Allocations) }
func waits(c Cost) string        { return fmt.Sprintf("%.1f", c.Waits) }
