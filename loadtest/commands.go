package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/fleet"
	"github.com/hookfabric/hookfabric/loadtest/notice"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
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

// commands returns the command line.
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
	for _, m := range measurements() {
		root.AddCommand(m.command())
	}
	root.AddCommand(
		modelCommand(),
		crashCommand(),
		clusterCommand(),
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

// roleCommand returns the command line of child processes.
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

// allRoles returns the roles of every command.
func allRoles() map[string]proc.Start {
	all := roles.All()
	maps.Copy(all, state.Roles())
	maps.Copy(all, fleet.Roles())
	maps.Copy(all, notice.Roles())
	return all
}

// profiled runs run and writes its CPU profile to file.
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
