package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// The names of the contenders.
const (
	raw      = "raw"
	floorIn  = "floor-in"  // raw, answered inside the server's process
	floorOut = "floor-out" // that responder asks another process first
	noHook   = "no hook"
	twoPools = "two pools"
	command  = "command per call"
)

func inBroker(hooks int) string  { return "broker, " + counted(hooks) }
func inPool(hooks int) string    { return "pool, " + counted(hooks) }
func byWebhook(hooks int) string { return "webhook, " + counted(hooks) }
func byStages(hooks int) string  { return "two HTTP stages, " + counted(hooks) }

func counted(hooks int) string {
	if hooks == 1 {
		return "1 hook"
	}
	return fmt.Sprintf("%d hooks", hooks)
}

// The pools that have a worker process each.
const (
	remote  = "remote"
	further = "further"
)

// counts lists the numbers of hooks.
func counts() []int { return []int{1, 3, 8} }

// tool returns the name of the tool whose events have so many hooks of a pool.
func tool(pool string, hooks int) string { return fmt.Sprintf("%s-%d", pool, hooks) }

// callers lists the numbers of callers.
func callers() []int { return []int{1, Many} }

// A row is a contender, and what it asks.
type row struct {
	name   string
	target roles.Target
}

// calls lists everything that the command bench measures, the bases first.
func calls() []row {
	all := []row{
		{raw, roles.Target{Way: roles.Raw, Hooks: 1}},
		{floorIn, roles.Target{Way: roles.InsideServer, Hooks: 1}},
		{floorOut, roles.Target{Way: roles.Relayed, Hooks: 1}},
		{noHook, roles.Target{Way: roles.Fabric, Tool: "none"}},
		{twoPools, roles.Target{Way: roles.Fabric, Tool: tool(further, 2), Hooks: 2}},
		{command, roles.Target{Way: roles.Command}},
	}
	for _, n := range counts() {
		all = append(all,
			row{inBroker(n), roles.Target{Way: roles.Fabric, Tool: tool(schema.DefaultPool, n), Hooks: n}},
			row{inPool(n), roles.Target{Way: roles.Fabric, Tool: tool(remote, n), Hooks: n}},
			row{byWebhook(n), roles.Target{Way: roles.Hook, Tool: tool("", n), Hooks: n}},
			row{byStages(n), roles.Target{Way: roles.TwoStages, Tool: tool("", n), Hooks: n}})
	}
	return all
}

// bases is the number of the first rows, by which the budgets divide.
const bases = 3

// chosen lists the rows with one of the texts in their names, and the bases.
func chosen(texts []string) []row {
	all := calls()
	return append(all[:bases:bases], slices.DeleteFunc(all[bases:], func(r row) bool {
		return len(texts) > 0 && !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(r.name, text) })
	})...)
}

// answering lists the processes beside the broker.
func answering() []Process {
	of := func(role string) func(Addresses) any { return func(at Addresses) any { return at[role] } }
	none := func(Addresses) any { return struct{}{} }
	return []Process{
		{roles.RawResponder, of(roles.Broker)}, {roles.Inside, none}, {roles.RawResponder, of(roles.Inside)},
		Worker(remote), Worker(further),
		{roles.Webhook, none}, {roles.StageTwo, none}, {roles.StageOne, of(roles.StageTwo)},
	}
}

// Worker is a hookworker of a pool.
func Worker(pool string) Process {
	return Process{roles.HookWorker, func(at Addresses) any { return roles.WorkerConfig{NATS: at[roles.Broker].URL, Pool: pool} }}
}

// callHooks is one configuration for all rows: the tool of an event selects its hooks. No
// hook is readonly, so each waits for the one before.
func callHooks() string {
	var b strings.Builder
	b.WriteString("presets: []\nhooks:\n  PreToolUse:\n")
	add := func(tool string, i int, pool string) {
		fmt.Fprintf(&b, "    - {name: %s-%d, matcher: %s, type: builtin, handler: allow, pool: %s}\n", tool, i, tool, pool)
	}
	for _, pool := range []string{schema.DefaultPool, remote} {
		for _, n := range counts() {
			for i := range n {
				add(tool(pool, n), i+1, pool)
			}
		}
	}
	add(tool(further, 2), 1, remote)
	add(tool(further, 2), 2, further)
	return b.String()
}

// CheckCalls returns an error for options with which the command bench cannot run.
func CheckCalls(o *Options) error {
	if !slices.Contains([]string{"", "facts", "content", "off"}, o.Record) {
		return fmt.Errorf("the record is %q; write facts, content or off", o.Record)
	}
	if len(o.Only) > 0 && !slices.ContainsFunc(calls(), func(r row) bool {
		return slices.ContainsFunc(o.Only, func(text string) bool { return strings.Contains(r.name, text) })
	}) {
		return fmt.Errorf("no row has one of %q in its name; write a part of a name, such as %q", o.Only, inPool(1))
	}
	return nil
}

// Calls measures the cost of a call, compared with one bare request-reply of the same event
// through the same server. A wrong answer is an error.
func Calls(ctx context.Context, o Options) (*Report, error) {
	return o.compare(ctx, callHooks(), answering(), chosen(o.Only), lines(), &Report{
		EventBytes: roles.EventSize,
		Window:     o.Milliseconds(200, 50),
		Warm:       o.Milliseconds(40, 10),
	})
}

// compare starts a fabric, measures the rows, stops the fabric, and adds the results to r.
func (o *Options) compare(ctx context.Context, hooks string, others []Process, rows []row, lines []Line, r *Report) (*Report, error) {
	o.Crew = o.Crew.Like(roles.KeepPages)
	f, err := o.Start(ctx, "fabric", hooks, roles.BrokerConfig{Record: o.Record}, others...)
	if err != nil {
		return nil, err
	}
	return r, errors.Join(o.samples(ctx, f, rows, lines, r), f.Stop())
}

func (o *Options) samples(ctx context.Context, f *Fabric, rows []row, lines []Line, r *Report) error {
	if err := f.Ask(ctx); err != nil {
		return err
	}
	var all []Contender
	for i, row := range rows {
		c := Contender{Name: row.name, Measure: func(ctx context.Context, callers int) (Sample, error) {
			return f.Measure(ctx, row.target, load.Window{Callers: callers, Warm: r.Warm, Long: r.Window})
		}}
		if i == 0 || row.name == floorIn || row.name == floorOut {
			c.Times = 3
		}
		all = append(all, c)
	}
	samples, err := o.Repeat(ctx, o.Times(10, 2), callers(), all)
	if err == nil && ctx.Err() == nil {
		err = o.count(ctx, f, rows, r)
	}
	if err != nil {
		return err
	}
	r.Compare(o, samples, lines)
	r.Show(samples, callers(), all)
	return nil
}
