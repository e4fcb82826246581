package main

import (
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/fleet"
	"github.com/hookfabric/hookfabric/loadtest/soak"
)

// soakCommand has a fleet under one load for long.
func soakCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "soak",
		Short: "Keep a fleet under one load for long, and look whether memory, goroutines or files grow",
		Args:  noArgs,
	}
	f := new(measuring)
	f.outputs(c)
	change := changing(c)
	o := soak.Default()
	c.Flags().DurationVar(&o.Settle, "settle", 0, "how often the processes collect their garbage, to see what is left (0: as often as its course needs)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		change.apply(c, &o.Scenario)
		if err := o.Check(); err != nil {
			return usage{err}
		}
		return f.staged(c, func(s stage) (outcome, error) {
			return soak.Run(c.Context(), o, fleet.Stage{Dir: s.dir, Crew: s.crew, Progress: s.live, Live: s.live})
		})
	}
	return c
}
