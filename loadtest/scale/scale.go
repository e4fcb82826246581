package scale

import (
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/model"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/schema"
)

// sizes are the steps of the parts, each in growing order.
type sizes struct{ hooks, matchers, agents, connections, pending, workers []int }

func thorough() sizes {
	return sizes{
		hooks: []int{1, 2, 4, 8, 16}, matchers: []int{1, 10, 100, 1000, 10_000}, agents: []int{10, 100, 1000, 10_000},
		connections: []int{500, 2000, 10_000}, pending: []int{0, 10, 100, 1000, 10_000, 100_000}, workers: []int{1, 2, 4},
	}
}

func quick() sizes {
	return sizes{
		hooks: []int{1, 16}, matchers: []int{1, 100}, agents: []int{10, 100},
		connections: []int{10, 100}, pending: []int{0, 100}, workers: []int{1, 2},
	}
}

// A Report is the result of a run.
type Report struct {
	result.Document
	// Units are the costs for the model of larger fleets. A unit that was not measured is 0.
	Units model.Units `json:"units,omitzero"`
	// Window is the duration of one measurement.
	Window schema.Duration `json:"window"`
}

// A run is the parts of one run, and what they report.
type run struct {
	bench.Options
	sizes
	report *Report
}

// Parts returns the names of the parts.
func Parts() []string {
	return []string{"hooks", "matchers", "agents", "connections", "pending", "workers", "units"}
}

// Run measures the parts.
func Run(ctx context.Context, o bench.Options) (*Report, error) {
	r := &run{Options: o, sizes: bench.Pick(&o, thorough(), quick()), report: &Report{Window: o.Milliseconds(250, 50)}}
	r.report.Title = fmt.Sprintf("Growth of the cost of a call; %d repetitions of %v at each step", o.Times(10, 1), r.report.Window)
	var parts []bench.Part
	for i, part := range []func(context.Context) error{r.growHooks, r.growMatchers, r.growAgents, r.growConnections, r.growPending, r.growWorkers, r.units} {
		parts = append(parts, bench.Part{Name: Parts()[i], Run: part})
	}
	return r.report, o.Run(ctx, &r.report.Document, parts)
}

// window returns a window with the given number of callers.
func (r *run) window(callers int) measure.Window {
	return measure.Window{Callers: callers, Warm: r.report.Window / 5, Long: r.report.Window}
}

// add adds a figure that was measured once.
func (r *Report) add(name, unit string, value float64) {
	r.Figures = append(r.Figures, result.Figured(name, unit, result.Lower, []float64{value}))
}
