package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/chaos"
	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/fleet"
)

// chaosCommand has a fleet under load while things go wrong at random.
func chaosCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "chaos",
		Short: "Kill, stop and cut off brokers, workers, server and agents at random, under load, and check every answer",
		Args:  noArgs,
	}
	f := new(measuring)
	f.outputs(c)
	change := changing(c)
	o := chaos.Default()
	kinds := c.Flags().StringSlice("kinds", nil, "do only faults of these `KINDS`: "+strings.Trim(fmt.Sprint(faults.Kinds()), "[]"))
	c.Flags().StringSliceVar(&o.Dice.Members, "members", nil, "do them only to these `MEMBERS`, such as \"worker-*\"")
	c.Flags().IntVar(&o.Dice.Together, "together", o.Dice.Together, "how many faults there are at the same time at most")
	c.Flags().DurationVar(&o.Dice.Longest, "longest", o.Dice.Longest, "how long a fault lasts at most")
	c.Flags().DurationVar(&o.Dice.Pause, "pause", o.Dice.Pause, "how long there is none after it, on average")
	c.RunE = func(c *cobra.Command, _ []string) error {
		for _, k := range *kinds {
			o.Dice.Kinds = append(o.Dice.Kinds, faults.Kind(k))
		}
		change.apply(c, &o.Scenario)
		if err := o.Check(); err != nil {
			return usage{err}
		}
		return f.staged(c, func(s stage) (outcome, error) {
			return chaos.Run(c.Context(), o, fleet.Stage{Dir: s.dir, Crew: s.crew, Progress: s.live, Live: s.live})
		})
	}
	return c
}
