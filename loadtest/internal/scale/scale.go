package scale

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
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
	report.Document
	// Units are the costs for the model of larger fleets. A unit that was not measured is 0.
	Units Units `json:"units,omitzero"`
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

func (r *run) window(callers int) load.Window {
	return load.Window{Callers: callers, Warm: r.report.Window / 5, Long: r.report.Window}
}

// add adds a figure that was measured once.
func (r *Report) add(name, unit string, value float64) {
	r.Figures = append(r.Figures, report.Figured(name, unit, report.Lower, []float64{value}))
}

// remote is the pool of the worker, and tool the tool of calls where it does not matter.
const (
	remote = "remote"
	tool   = "Bash"
)

// relaxed is the sync interval of the brokers: only the units measure the disk.
const relaxed = schema.Duration(time.Second)

// target returns the target of calls of one agent over the fabric.
func target(tool string, hooks int) roles.Target {
	return roles.Target{Way: roles.Fabric, Tool: tool, Hooks: hooks, Prefix: "agent-"}
}

// start starts a broker with a configuration, other processes and a requester.
func (r *run) start(ctx context.Context, name, hooks string, others ...bench.Process) (*bench.Fabric, error) {
	f, err := r.bare(ctx, name, hooks, others...)
	if err != nil {
		return nil, err
	}
	if err := f.Ask(ctx); err != nil {
		return nil, errors.Join(err, f.Stop())
	}
	return f, nil
}

// bare starts a broker without a requester. Its address stays the same after a restart.
func (r *run) bare(ctx context.Context, name, hooks string, others ...bench.Process) (*bench.Fabric, error) {
	free, err := bustest.FindAddresses(1)
	if err != nil {
		return nil, err
	}
	return r.Start(ctx, name, hooks, roles.BrokerConfig{Listen: free[0], Sync: relaxed}, others...)
}

// hooksYAML returns a configuration whose hooks at PreToolUse are the lines.
func hooksYAML(lines []string) string {
	return "presets: []\nhooks:\n  PreToolUse:\n" + strings.Join(lines, "")
}

func hookYAML(name, matcher, pool string) string {
	return fmt.Sprintf("    - {name: %s, matcher: %q, type: builtin, handler: allow, pool: %s}\n", name, matcher, pool)
}
