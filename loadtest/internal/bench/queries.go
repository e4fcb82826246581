package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// A setup is the hooks that the events of a query meet.
type setup struct {
	name string
	// agent has the hooks in the configuration.
	agent string
	// hooks is how many run at each event, messages how many messages to workers a whole
	// query sends.
	hooks, messages int
	way             roles.Way
}

// setups lists all of them. The first is the base.
func setups() []setup {
	return []setup{
		{name: "bare request-replies", agent: "loop-raw", way: roles.Raw},
		{name: "no hook", agent: "loop-none", way: roles.Fabric},
		{name: "a hook on each event whose when is false", agent: "loop-false", way: roles.Fabric},
		{name: "a hook on each event inside broker", agent: "loop-broker", hooks: 1, way: roles.Fabric},
		{name: "a hook on each event of a remote pool", agent: "loop-remote", hooks: 1, messages: roles.QueryEvents, way: roles.Fabric},
	}
}

// queries lists the rows and lines of the command loop: each setup with tools in sequence
// and at once. Queries have no budgets, because single calls have.
func queries() (rows []row, lines []Line) {
	for _, shape := range []string{"tools in sequence", "tools at once"} {
		base := setups()[0].name + ", " + shape
		for i, s := range setups() {
			name := s.name + ", " + shape
			rows = append(rows, row{name, roles.Target{Way: s.way, Query: &roles.Query{Agent: s.agent, AtOnce: shape == "tools at once", Hooks: s.hooks}}})
			if i > 0 {
				lines = append(lines, Line{Of: name, By: base})
			}
		}
	}
	return rows, lines
}

// queryHooks gives each agent its hooks at the events of a query.
func queryHooks() string {
	var b strings.Builder
	b.WriteString("presets: []\nagents:\n")
	each := func(agent, more string) {
		fmt.Fprintf(&b, "  - id: %s\n    hooks:\n", agent)
		for _, e := range queryEvents() {
			fmt.Fprintf(&b, "      %s:\n        - {type: builtin, handler: allow, %s}\n", e, more)
		}
	}
	each("loop-broker", "pool: "+schema.DefaultPool)
	each("loop-remote", "pool: "+remote)
	each("loop-false", `pool: `+remote+`, when: "iteration > 1000"`)
	return b.String()
}

// queryEvents are the events of a query in which no tool fails.
func queryEvents() []schema.EventType {
	return []schema.EventType{
		schema.UserPromptSubmit, schema.BeforeLLMCall, schema.AfterLLMCall, schema.PreToolUse, schema.PostToolUse, schema.BeforeFinalResponse, schema.QueryEnd,
	}
}

// Queries measures one query of an agent's loop, whose model calls four tools and then
// answers, compared with as many bare request-replies. A wrong answer is an error.
func Queries(ctx context.Context, o Options) (*Report, error) {
	rows, lines := queries()
	all := answering()
	o.Repetitions = o.Times(12, 1)
	return o.compare(ctx, queryHooks(), []Process{all[0], all[3]}, rows, lines, &Report{
		Window: o.Milliseconds(300, 30),
		Warm:   o.Milliseconds(50, 5),
	})
}

// expected is the check of the messages of a query.
const expected = "a query sends its workers exactly the expected messages"

// count counts the messages that one query of each row sends to workers: a hook whose
// `when` is false must cost none. Other rows are not counted.
func (o *Options) count(ctx context.Context, f *Fabric, rows []row, r *Report) error {
	if !slices.ContainsFunc(rows, func(r row) bool { return r.target.Query != nil }) {
		return nil
	}
	// The tap starts after the measurements, which it would slow down.
	tap, err := f.Crew.Start(ctx, roles.Tap, roles.TapConfig{NATS: f.URL(), Subject: "hook.v1.run.>"}, nil)
	if err != nil {
		return err
	}
	counted := map[string]int{}
	for _, row := range rows {
		var before, after int
		err := errors.Join(tap.Ask(ctx, struct{}{}, &before), f.Ready(ctx, row.target), tap.Ask(ctx, struct{}{}, &after))
		if err != nil {
			return fmt.Errorf("counting the messages of %q: %w", row.name, err)
		}
		counted[row.name] = after - before
	}
	r.judgeMessages(rows, counted)
	return nil
}

// judgeMessages adds the check and the table of the messages of each row.
func (r *Report) judgeMessages(rows []row, counted map[string]int) {
	t := report.Table{Title: fmt.Sprintf("messages to workers of one query of %d events", roles.QueryEvents), Columns: []string{"", "sent", "expected"}}
	check := r.Check(expected)
	check.Least = 1
	for _, row := range rows {
		i := slices.IndexFunc(setups(), func(s setup) bool { return s.agent == row.target.Query.Agent })
		sent, due := counted[row.name], setups()[i].messages
		t.Rows = append(t.Rows, []string{row.name, fmt.Sprint(sent), fmt.Sprint(due)})
		if check.Seen++; sent != due {
			check.Fail(fmt.Sprintf("%s: %d instead of %d", row.name, sent, due))
		}
	}
	r.Tables = append(r.Tables, t)
}
