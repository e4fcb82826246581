package main

import (
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/freeze"
)

func freezeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "freeze",
		Short: "Measure how long it takes until an operator's freeze has reached every shim",
		Args:  noArgs,
	}
	f := flags(c)
	usual := freeze.Thorough()
	shims := c.Flags().Int("shims", usual.Shims, "how many shims ask, each on a connection of its own")
	every := c.Flags().Duration("every", usual.Every, "how often each of them asks")
	brokers := c.Flags().Int("brokers", usual.Brokers, "how many brokers answer them")
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
