package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/compare"
	"github.com/hookfabric/hookfabric/loadtest/report"
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// errWorse is a comparison that found something.
var errWorse = errors.New("something got worse; the table shows what")

func compareCommand() *cobra.Command {
	var page string
	var percent float64
	var noFail bool
	c := &cobra.Command{
		Use:   "compare OLD.json NEW.json",
		Short: "Say of each figure of two runs whether it got better, worse or stayed the same",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage{fmt.Errorf("a comparison is of two files that runs wrote with --json, not of %d", len(args))}
			}
			return nil
		},
	}
	c.Flags().StringVar(&page, "html", "", "write the comparison and both runs as one page to `FILE`, too")
	c.Flags().Float64Var(&percent, "threshold", 3, "a change up to so many `PERCENT` does not matter")
	c.Flags().BoolVar(&noFail, "no-fail", false, "exit with 0 even if something got worse")
	c.RunE = func(c *cobra.Command, args []string) error {
		if !(percent >= 0 && percent <= 1000) {
			return usage{fmt.Errorf("a threshold is from 0 to 1000 %%, not %v", percent)}
		}
		old, err := result.ReadFile(args[0])
		if err != nil {
			return err
		}
		latest, err := result.ReadFile(args[1])
		if err != nil {
			return err
		}
		found := compare.Compare(old, latest, percent/100)
		if len(found.Changes)+len(found.Checks) == 0 {
			return usage{fmt.Errorf("%s is of %s and %s of %s, and they have no figure and no check in common; name two runs of one scenario",
				args[0], old.Scenario, args[1], latest.Scenario)}
		}
		shown := found.Document()
		if err := report.Print(c.OutOrStdout(), shown); err != nil {
			return err
		}
		if page != "" {
			latest.Title, old.Title = "Now: "+latest.Title, "Before: "+old.Title
			if err := writePage(page, shown, latest, old); err != nil {
				return err
			}
		}
		if !found.OK() && !noFail {
			return errWorse
		}
		return nil
	}
	return c
}
