package main

import (
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/record"
)

func recordCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "record",
		Short: "Measure the cost of recording all verdicts, and check that each is recorded once",
		Args:  noArgs,
	}
	f := flags(c)
	rate := c.Flags().Float64("rate", record.DefaultRate, "verdicts per second")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o := record.Thorough()
		if f.quick {
			o = record.Quick()
		}
		if f.reps > 0 {
			o.Repetitions = f.reps
		}
		o.Rate = *rate
		if err := o.Check(); err != nil {
			return usage{err}
		}
		return f.staged(c, func(s stage) (outcome, error) {
			o.Dir, o.Crew, o.Progress = s.dir, s.crew, s.live
			return record.Run(c.Context(), o)
		})
	}
	return c
}
