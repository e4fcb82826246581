package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/notice"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
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
		Example:       "  loadtest\n  loadtest --for 1m --out /tmp/report",
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
	for _, b := range bundles() {
		root.AddCommand(b.command())
	}
	root.AddCommand(runCommand(), modelCommand(), compareCommand(), showCommand(), tablesCommand(), roleCommand())
	return root
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage{fmt.Errorf("unexpected argument %q; see '%s --help'", args[0], c.CommandPath())}
	}
	return nil
}

// oneArg returns a check that there is one argument; hint says which.
func oneArg(hint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage{fmt.Errorf("got %d arguments; %s", len(args), hint)}
		}
		return nil
	}
}

// roleCommand returns the command line of child processes.
func roleCommand() *cobra.Command {
	var profiles string
	c := &cobra.Command{Use: "role NAME", Hidden: true, Args: cobra.ExactArgs(1)}
	c.Flags().StringVar(&profiles, "profiles", "", "write a CPU profile into `DIR`")
	c.RunE = func(c *cobra.Command, args []string) error {
		start, ok := allRoles()[args[0]]
		if !ok {
			return usage{fmt.Errorf("unknown role %q", args[0])}
		}
		serve := func() error { return proc.Serve(c.Context(), start, os.Stdin, os.Stdout) }
		if profiles == "" {
			return serve()
		}
		return profiled(filepath.Join(profiles, fmt.Sprintf("%s-%d.pprof", args[0], os.Getpid())), serve)
	}
	return c
}

// allRoles returns the roles of every command.
func allRoles() map[string]proc.Start {
	all := roles.All()
	maps.Copy(all, fleet.Roles())
	maps.Copy(all, notice.Roles())
	return all
}

// profiled runs run and writes its CPU profile to file.
func profiled(file string, run func() error) error {
	f, err := os.Create(file)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	err = run()
	pprof.StopCPUProfile()
	return errors.Join(err, f.Close())
}
