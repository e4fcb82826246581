package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/fleet"
	"github.com/hookfabric/hookfabric/loadtest/loop"
	"github.com/hookfabric/hookfabric/loadtest/notice"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/loadtest/scale"
	"github.com/hookfabric/hookfabric/loadtest/shim"
	"github.com/hookfabric/hookfabric/loadtest/state"
)

// errBudget is returned by a complete run with a figure over budget or a failed check.
var errBudget = errors.New("a figure exceeded its budget, or a check failed; the table shows which")

// usage is an error in the command line.
type usage struct{ error }

func exitCode(err error) int {
	if e, ok := errors.AsType[ended](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[usage](err); ok {
		return 2
	}
	return 1
}

// commands is the command line.
func commands() *cobra.Command {
	root := &cobra.Command{
		Use:           "loadtest",
		Short:         "Measure hookfabric on this machine, and check every answer",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
	}
	all := overviewFlags(root)
	root.RunE = func(c *cobra.Command, _ []string) error { return all.run(c) }
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage{err} })
	root.AddCommand(
		benchCommand(),
		scaleCommand(),
		modelCommand(),
		crashCommand(),
		stateCommand(),
		shimCommand(),
		loopCommand(),
		noticeCommand(),
		freezeCommand(),
		clusterCommand(),
		recordCommand(),
		shippedCommand("fleet", "Let many agents use tools at the same time, in an open loop, and check every answer"),
		shippedCommand("saturate", "Find the highest rate of tool calls that the fabric keeps up with"),
		shippedCommand("overload", "Send twice the rate that the fabric keeps up with, and measure how it recovers"),
		chaosCommand(),
		soakCommand(),
		runCommand(),
		compareCommand(),
		showCommand(),
		tablesCommand(),
		roleCommand(),
	)
	return withExamples(root)
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage{fmt.Errorf("unexpected argument %q; see '%s --help'", args[0], c.CommandPath())}
	}
	return nil
}

// roleCommand is the command line of child processes.
func roleCommand() *cobra.Command {
	var profiles string
	c := &cobra.Command{
		Use:    "role NAME",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			start, ok := allRoles()[args[0]]
			if !ok {
				return usage{fmt.Errorf("unknown role %q", args[0])}
			}
			serve := func() error { return proc.Serve(c.Context(), start, os.Stdin, os.Stdout) }
			if profiles == "" {
				return serve()
			}
			return profiled(filepath.Join(profiles, fmt.Sprintf("%s-%d.pprof", args[0], os.Getpid())), serve)
		},
	}
	c.Flags().StringVar(&profiles, "profiles", "", "write a CPU profile into `DIR`")
	return c
}

// allRoles are the roles of every command.
func allRoles() map[string]proc.Start {
	all := roles.All()
	maps.Copy(all, state.Roles())
	maps.Copy(all, fleet.Roles())
	maps.Copy(all, notice.Roles())
	return all
}

// profiled writes what run spends its CPU time on to file.
func profiled(file string, run func() error) error {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	err = run()
	pprof.StopCPUProfile()
	return errors.Join(err, f.Close())
}

func benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Compare a call of the fabric with a bare request-reply, webhooks and command hooks",
		Args:  noArgs,
	}
	f := flags(c)
	only := c.Flags().String("only", "", "measure only rows whose name contains `TEXT`, and the bare request-reply (default: all rows)")
	record := c.Flags().String("record", "facts", "record of verdicts in the broker: facts, content or off")
	slack := slackFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		o := bench.Thorough()
		if f.quick {
			o = bench.Quick()
		}
		if f.reps > 0 {
			o.Repetitions = f.reps
		}
		o.Only, o.Slack, o.Record = *only, *slack, *record
		if err := o.Check(); err != nil {
			return usage{err}
		}
		return f.staged(c, func(s stage) (outcome, error) {
			o.Dir, o.Crew, o.Progress = s.dir, s.crew, s.live
			return bench.Run(c.Context(), o)
		})
	}
	return c
}

// slackFlag is for commands whose figures have budgets.
func slackFlag(c *cobra.Command) *float64 {
	f := factor(1)
	c.Flags().Var(&f, "slack", "accept figures that miss their budget by up to `FACTOR`, 1 to 1000, for short runs and busy machines")
	return (*float64)(&f)
}

// A factor is the value of a flag, 1 or more.
type factor float64

func (f *factor) String() string { return strconv.FormatFloat(float64(*f), 'g', -1, 64) }

// Type is what the usage would call it by itself.
func (f *factor) Type() string { return "factor" }

// Set refuses what would judge nothing, or everything.
func (f *factor) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 1 && v <= 1000) {
		return errors.New("write a number from 1 to 1000, such as 1.5")
	}
	*f = factor(v)
	return nil
}

func scaleCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "scale",
		Short: "Measure how the cost of a call grows with hooks, matchers, agents, connections, waiting messages and workers",
		Args:  noArgs,
	}
	f := flags(c)
	only := c.Flags().StringSlice("only", nil, "measure only these comma-separated `PARTS`: "+strings.Join(scale.Parts(), ", ")+" (default: all)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o := scale.Thorough()
		if f.quick {
			o = scale.Quick()
		}
		if f.reps > 0 {
			o.Repetitions = f.reps
		}
		o.Only = *only
		if err := o.Check(); err != nil {
			return usage{err}
		}
		return f.staged(c, func(s stage) (outcome, error) {
			o.Dir, o.Crew, o.Progress = s.dir, s.crew, s.live
			return scale.Run(c.Context(), o)
		})
	}
	return c
}

func stateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "state",
		Short: "Measure the message queue: speed, messages of other agents, broadcasts, and a cluster without a leader",
		Args:  noArgs,
	}
	f := flags(c)
	only := c.Flags().StringSlice("only", nil, "measure only these comma-separated `PARTS`: "+strings.Join(state.Parts(), ", ")+" (default: all)")
	slack := slackFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		o := state.Thorough()
		if f.quick {
			o = state.Quick()
		}
		if f.reps > 0 {
			o.Repetitions = f.reps
		}
		o.Only, o.Slack = *only, *slack
		if err := o.Check(); err != nil {
			return usage{err}
		}
		return f.staged(c, func(s stage) (outcome, error) {
			o.Dir, o.Crew, o.Progress = s.dir, s.crew, s.live
			return state.Run(c.Context(), o)
		})
	}
	return c
}

func shimCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "shim",
		Short: "Measure `agentshim hook` from exec to exit, direct and through the daemon",
		Args:  noArgs,
	}
	f := flags(c)
	slack := slackFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		o := shim.Thorough()
		if f.quick {
			o = shim.Quick()
		}
		if f.reps > 0 {
			o.Repetitions = f.reps
		}
		o.Slack = *slack
		return f.staged(c, func(s stage) (outcome, error) {
			o.Dir, o.Crew, o.Progress = s.dir, s.crew, s.live
			return shim.Run(c.Context(), o)
		})
	}
	return c
}

func loopCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "loop",
		Short: "Compare the events of a whole query with as many bare request-replies",
		Args:  noArgs,
	}
	f := flags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		o := loop.Thorough()
		if f.quick {
			o = loop.Quick()
		}
		if f.reps > 0 {
			o.Repetitions = f.reps
		}
		return f.staged(c, func(s stage) (outcome, error) {
			o.Dir, o.Crew, o.Progress = s.dir, s.crew, s.live
			return loop.Run(c.Context(), o)
		})
	}
	return c
}
