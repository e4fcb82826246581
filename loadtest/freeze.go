package main

import (
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/freeze"
)

func freezeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "freeze",
		Short: "Measure how long an operator's freeze takes to reach every shim",
		Args:  noArgs,
	}
	f := flags(c)
	usual := freeze.Thorough()
	shims := c.Flags().Int("shims", usual.Shims, "number of shims, each with its own connection")
	every := c.Flags().Duration("every", usual.Every, "interval between two calls of a shim")
	brokers := c.Flags().Int("brokers", usual.Brokers, "number of brokers")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o := usual
		o.Shims, o.Every, o.Brokers = *shims, *every, *brokers
		if f.quick {
			quick := freeze.Quick()
			o.Repetitions = quick.Repetitions
			if !c.Flags().Changed("shims") {
				o.Shims = quick.Shims
			}
		}
		if f.reps > 0 {
			o.Repetitions = f.reps
		}
		if err := o.Check(); err != nil {
			return usage{err}
		}
		return f.staged(c, func(s stage) (outcome, error) {
			o.Dir, o.Crew, o.Progress = s.dir, s.crew, s.live
			return freeze.Run(c.Context(), o)
		})
	}
	return c
}
