package scale

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// growHooks grows the number of hooks of one call.
func (r *run) growHooks(ctx context.Context) (err error) {
	toolOf := func(pool string, n int) string { return fmt.Sprintf("%s-%d", pool, n) }
	pools := []string{schema.DefaultPool, remote}
	var lines []string
	for _, pool := range pools {
		for _, n := range r.hooks {
			for i := range n {
				lines = append(lines, hookYAML(fmt.Sprintf("%s-%d-%d", pool, n, i+1), toolOf(pool, n), pool))
			}
		}
	}
	f, err := r.start(ctx, "hooks", hooksYAML(lines), bench.Worker(remote))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Stop()) }()
	g := &growth{
		part: "hooks", title: "Hooks on one call", of: "hooks", worker: true,
		note: "One caller. Each hook allows immediately. No hook is readonly, so each waits for the one before.",
		all:  []*series{{name: "inside broker"}, {name: "of a remote pool"}},
	}
	for i, pool := range pools {
		for _, n := range r.hooks {
			g.all[i].steps = append(g.all[i].steps, step{counted(n, "hook", "hooks"), n, f, target(toolOf(pool, n), n), r.window(1)})
		}
	}
	return r.measure(ctx, g)
}

// hit starts the names of the tools that the matching hook selects.
const hit = "hit"

// A kind is a way to write many hooks of which one matches.
type kind struct {
	name string
	// hooks returns a configuration with n of them.
	hooks func(n int) string
	// asks are the series.
	asks []named
}

type named struct {
	name   string
	target roles.Target
}

func kinds() []kind {
	warm, cold := named{"asked before", target(hit, 1)}, named{"a new tool each time", target(hit, 1)}
	cold.target.Fresh = roles.FreshTool
	others := named{"a new agent each time", target(hit, 0)}
	others.target.Fresh = roles.FreshAgent
	return []kind{
		{"of all agents, by tools' names", func(n int) string { return global(n, "miss-%d|other-%d") }, []named{warm, cold}},
		{"of all agents, by globs", func(n int) string { return global(n, "*miss-%d|*other-%d") }, []named{cold}},
		{"one for each agent", ofAgents, []named{warm, cold, others}},
	}
}

// global returns n hooks of all agents with matchers of one form. The middle one matches.
func global(n int, form string) string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = hookYAML(fmt.Sprintf("h%d", i), fmt.Sprintf(form, i, i), schema.DefaultPool)
	}
	lines[n/2] = hookYAML("match", hit+"*", schema.DefaultPool)
	return hooksYAML(lines)
}

// ofAgents returns n agents with one hook each.
func ofAgents(n int) string {
	var b strings.Builder
	b.WriteString("presets: []\nagents:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - id: agent-%d\n    hooks:\n      PreToolUse:\n        - {name: h%d, matcher: %q, type: builtin, handler: allow}\n", i, i, hit+"*")
	}
	return b.String()
}

// growMatchers grows the number of hooks in the configuration, of which one matches.
func (r *run) growMatchers(ctx context.Context) (err error) {
	var all []*bench.Fabric
	defer func() { err = errors.Join(err, bench.StopAll(all)) }()
	g := &growth{
		part: "matchers", title: "Hooks in the configuration, of which one matches", of: "hooks in the configuration",
		note: "One caller. A known tool or agent has a cached plan; a new one needs a new plan. The broker looks up names and prefixes of globs. These globs begin with a star, so it tries each of them.",
	}
	t := report.Table{Title: "What a configuration takes", Columns: []string{"hooks", "file", "apply", "broker's heap"}}
	for i, k := range kinds() {
		of := make([]*series, len(k.asks))
		for j, a := range k.asks {
			of[j] = &series{name: k.name + ", " + a.name}
		}
		for _, n := range r.matchers {
			f, err := r.start(ctx, fmt.Sprintf("matchers-%d-%d", i, n), k.hooks(n))
			if err != nil {
				return err
			}
			all = append(all, f)
			for j, a := range k.asks {
				of[j].steps = append(of[j].steps, step{counted(n, "hook", "hooks"), n, f, a.target, r.window(1)})
			}
			took, err := bench.Settle(ctx, f.Broker)
			if err != nil {
				return err
			}
			apply, err := apply(ctx, f.URL(), k.hooks(n))
			if err != nil {
				return err
			}
			t.Rows = append(t.Rows, []string{
				grouped(float64(n)) + " " + k.name, report.Value(float64(len(k.hooks(n))), "B"), report.Value(apply, "s"), report.Value(float64(took.Heap), "B"),
			})
			r.report.add(fmt.Sprintf("matchers: %s, apply %s", k.name, counted(n, "hook", "hooks")), "s", apply)
		}
		r.Say("matchers: %d configurations of hooks %s are running", len(r.matchers), k.name)
		g.all = append(g.all, of...)
	}
	r.report.Tables = append(r.report.Tables, t)
	return r.measure(ctx, g)
}

// apply applies another version of a configuration, and returns how long it took.
func apply(ctx context.Context, url, hooks string) (seconds float64, err error) {
	nc, err := bus.Connect(ctx, bus.Options{URL: url, Name: "loadtest scale"})
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	text := strings.Replace(hooks, "handler: allow", "timeout: 20, handler: allow", 1)
	var a schema.ConfigAnswer
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = roles.Control(ctx, nc, roles.Verb{Verb: "config"}, schema.ConfigRequest{Action: schema.ActionApply, Source: text, File: "hooks.yaml"}, &a)
	switch {
	case err != nil:
		return 0, fmt.Errorf("applying a configuration of %d bytes: %w", len(text), err)
	case !a.Changed || a.Refused:
		return 0, fmt.Errorf("applying a configuration returned %+v", a)
	}
	return time.Since(began).Seconds(), nil
}

const (
	// slots is the number of hooks that a worker runs at once, queued that of callers beyond
	// the slots. More would be an overload, of which a broker rejects calls.
	slots  = 8
	queued = 8
	// wait is how long a hook waits, burn how much CPU time it takes instead.
	wait = 20 * time.Millisecond
	burn = 2 * time.Millisecond
	// efficiency is the part of linear growth that a pool whose hooks wait must reach.
	efficiency = 0.8
)

// growWorkers grows the number of workers of one pool. Each step is a pool of its own.
func (r *run) growWorkers(ctx context.Context) (err error) {
	labours := []roles.WaiterConfig{{Wait: schema.Duration(wait)}, {Wait: schema.Duration(burn), Burn: true}}
	g := &growth{
		part: "workers", title: "Workers of one pool", of: "workers",
		note: fmt.Sprintf("Each worker runs %d calls in parallel, and there are %d more callers. Hooks that compute share the CPUs of this machine.", slots, queued),
		all:  []*series{{name: fmt.Sprintf("hooks that wait %v", wait)}, {name: fmt.Sprintf("hooks that compute for %v", burn)}},
	}
	pool := func(i, n int) string { return fmt.Sprintf("waiting-%d-%d", i, n) }
	var lines []string
	for i := range labours {
		for _, n := range r.workers {
			lines = append(lines, fmt.Sprintf("    - {name: %[1]s, matcher: %[1]s, type: builtin, handler: %[2]s, pool: %[1]s}\n", pool(i, n), roles.WaitHandler))
		}
	}
	f, err := r.start(ctx, "workers", hooksYAML(lines))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Stop()) }()
	for i, c := range labours {
		for _, n := range r.workers {
			c.NATS, c.Pool, c.Slots = f.URL(), pool(i, n), slots
			for range n {
				if _, err := f.Crew.Start(ctx, roles.Waiter, c, nil); err != nil {
					return err
				}
			}
			w := load.Window{Callers: n*slots + queued, Warm: r.report.Window / 5, Long: max(2*r.report.Window, schema.Duration(10*wait))}
			g.all[i].steps = append(g.all[i].steps, step{counted(n, "worker", "workers"), n, f, target(c.Pool, 1), w})
		}
	}
	if err := r.measure(ctx, g); err != nil {
		return err
	}
	g.judgeWorkers(r.report)
	return nil
}

// judgeWorkers adds how much the throughput of each pool grew. Where hooks wait it has a budget.
func (g *growth) judgeWorkers(r *Report) {
	for i, s := range g.all {
		for n, st := range s.steps[1:] {
			f := report.Figured("workers: "+s.label(n+1)+" : the first", "ratio", report.Higher, g.ratios(s, n+1, bench.PerSecond))
			if i == 0 {
				f = f.Within(efficiency * float64(st.many) / float64(s.steps[0].many))
			}
			r.Figures = append(r.Figures, f)
		}
	}
}
