package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/freeze"
	"github.com/hookfabric/hookfabric/loadtest/internal/notice"
	"github.com/hookfabric/hookfabric/loadtest/internal/scale"
	"github.com/hookfabric/hookfabric/loadtest/internal/shim"
	"github.com/hookfabric/hookfabric/loadtest/internal/state"
)

// A measurement is a command that measures one thing.
type measurement struct {
	name, short, example string
	run                  func(context.Context, bench.Options) (outcome, error)
	// parts are the values of --only. Without parts there is no such flag.
	parts []string
	// slack means that the figures have budgets that --slack widens.
	slack bool
	// flags adds further flags; nil: none.
	flags func(*pflag.FlagSet, *bench.Options)
	// check returns an error for invalid options; nil: all are valid.
	check func(*bench.Options) error
}

func measurements() []measurement {
	return []measurement{
		{
			name: "bench", short: "Compare a call of the fabric with a bare request-reply, webhooks and command hooks",
			example: "  loadtest bench --only pool --quick\n  loadtest bench --json new.json --html new.html",
			run:     measuredBy(bench.Calls), slack: true, check: bench.CheckCalls,
			flags: func(f *pflag.FlagSet, o *bench.Options) {
				f.StringArrayVar(&o.Only, "only", nil, "measure only rows whose name contains `TEXT`, and the bare request-replies (default: all rows)")
				f.StringVar(&o.Record, "record", "facts", "record of verdicts in the broker: facts, content or off")
			},
		},
		{
			name: "account", short: "Measure what the processor time of a call is for, by profiles of the processes that answer",
			example: "  loadtest account --json account.json",
			run:     measuredBy(bench.Account),
		},
		{
			name: "scale", short: "Measure how the cost of a call grows with hooks, matchers, agents, connections, waiting messages and workers",
			example: "  loadtest scale --only hooks,agents --json scale.json",
			run:     measuredBy(scale.Run), parts: scale.Parts(),
		},
		{
			name: "state", short: "Measure the message queue: speed, messages of other agents, and broadcasts",
			example: "  loadtest state --only speed",
			run:     measuredBy(state.Run), parts: state.Parts(), slack: true,
		},
		{
			name: "shim", short: "Measure `agentshim hook` from exec to exit, direct and through the daemon",
			example: "  loadtest shim --reps 10",
			run:     measuredBy(shim.Run), slack: true,
		},
		{
			name: "loop", short: "Compare the events of a whole query with as many bare request-replies",
			example: "  loadtest loop --json loop.json",
			run:     measuredBy(bench.Queries),
		},
		{
			name: "notice", short: "Measure how long the fabric takes to notice that a worker or an aggregator is lost",
			example: "  loadtest notice --reps 20",
			run:     measuredBy(notice.Run), parts: notice.Losses(), slack: true,
		},
		{
			name: "freeze", short: "Measure how long an operator's freeze takes to reach every shim",
			example: "  loadtest freeze --shims 200",
			run:     measuredBy(freeze.Run), check: freeze.Check,
			flags: func(f *pflag.FlagSet, o *bench.Options) {
				f.IntVar(&o.Shims, "shims", freeze.DefaultShims, "number of shims, each with its own connection (--quick: 100)")
			},
		},
		{
			name: "record", short: "Measure the cost of recording all verdicts, and check that each is recorded once",
			example: "  loadtest record --rate 500",
			run:     measuredBy(bench.Record), check: bench.CheckRecord,
			flags: func(f *pflag.FlagSet, o *bench.Options) {
				f.Float64Var(&o.Rate, "rate", bench.Rate, "verdicts per second")
			},
		},
	}
}

// measuredBy adapts a run whose report is an outcome.
func measuredBy[R outcome](run func(context.Context, bench.Options) (R, error)) func(context.Context, bench.Options) (outcome, error) {
	return func(ctx context.Context, o bench.Options) (outcome, error) { return run(ctx, o) }
}

func (m measurement) command() *cobra.Command {
	c := &cobra.Command{Use: m.name, Short: m.short, Example: m.example, Args: noArgs}
	f, o := flags(c), new(bench.Options)
	c.Flags().IntVar(&o.Repetitions, "reps", 0, "number of repetitions (default: enough for narrow intervals)")
	c.Flags().BoolVar(&o.Quick, "quick", false, "measure briefly, to see that it works; the figures are not reliable")
	if len(m.parts) > 0 {
		c.Flags().StringSliceVar(&o.Only, "only", nil, "measure only these comma-separated `PARTS`: "+strings.Join(m.parts, ", ")+" (default: all)")
	}
	if m.slack {
		c.Flags().Var((*factor)(&o.Slack), "slack", "accept figures that miss their budget by up to `FACTOR`, 1 to 1000, for short runs and busy machines")
	}
	if m.flags != nil {
		m.flags(c.Flags(), o)
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if o.Quick && !c.Flags().Changed("shims") {
			o.Shims = 0
		}
		if err := m.wrong(o); err != nil {
			return usage{err}
		}
		return f.staged(c, func(s stage) (outcome, error) {
			o.Dir, o.Crew, o.Progress = s.Dir, s.Crew, s.Live
			return m.run(c.Context(), *o)
		})
	}
	return c
}

// wrong returns an error for options with which the measurement cannot run.
func (m measurement) wrong(o *bench.Options) error {
	if o.Repetitions < 0 {
		return fmt.Errorf("--reps is %d; write a positive number such as 10, or leave it out", o.Repetitions)
	}
	for _, name := range o.Only {
		if len(m.parts) > 0 && !slices.Contains(m.parts, name) {
			return fmt.Errorf("unknown part %q; write one or more of %s", name, strings.Join(m.parts, ", "))
		}
	}
	if m.check != nil {
		return m.check(o)
	}
	return nil
}

// A factor is the value of a flag, 1 or more.
type factor float64

// String returns the number, at least 1.
func (f *factor) String() string { return strconv.FormatFloat(max(float64(*f), 1), 'g', -1, 64) }

// Type returns the name of the type in the usage.
func (f *factor) Type() string { return "factor" }

// Set rejects factors that would accept nothing or everything.
func (f *factor) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 1 && v <= 1000) {
		return errors.New("write a number from 1 to 1000, such as 1.5")
	}
	*f = factor(v)
	return nil
}
