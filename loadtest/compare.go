package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/compare"
	"github.com/hookfabric/hookfabric/loadtest/report"
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// errWorse is a comparison that found something.
var errWorse = errors.New("something got worse; the table shows what")

// comparing is what compare can be told.
type comparing struct {
	page     string
	percent  float64
	noFail   bool
	old, new []string
}

// between stands between the old runs and the new ones.
const between = ":"

func compareCommand() *cobra.Command {
	f := new(comparing)
	c := &cobra.Command{
		Use:   "compare OLD.json [OLD.json ...] [:] NEW.json [NEW.json ...]",
		Short: "Say of each figure of two runs, or of some and others, whether it got better, worse or stayed the same",
		Long: "Say of each figure of two runs whether it got better, worse or stayed the same.\n\n" +
			"One run does not know how much the next one would differ. With several on a side,\n" +
			"compare OLD1 OLD2 : NEW1 NEW2, it is the spread from run to run that is judged by.",
		Args: func(_ *cobra.Command, args []string) error { return f.sides(args) },
	}
	c.Flags().StringVar(&f.page, "html", "", "write the comparison and all runs as one page to `FILE`, too")
	c.Flags().Float64Var(&f.percent, "threshold", 3, "a change up to so many `PERCENT` does not matter")
	c.Flags().BoolVar(&f.noFail, "no-fail", false, "exit with 0 even if something got worse")
	c.Flags().StringArrayVar(&f.old, "old", nil, "an old run, in `FILE`; may be repeated, and goes with --new")
	c.Flags().StringArrayVar(&f.new, "new", nil, "a new run, in `FILE`; may be repeated, and goes with --old")
	c.RunE = func(c *cobra.Command, _ []string) error { return f.run(c) }
	return c
}

// sides finds out which files are the old runs and which the new ones.
func (f *comparing) sides(args []string) error {
	colon := slices.Index(args, between)
	switch flags := len(f.old)+len(f.new) > 0; {
	case flags && len(args) > 0:
		return usage{fmt.Errorf("with --old and --new each run is named by one of them, and not by itself: %q", args)}
	case flags:
	case colon >= 0:
		f.old, f.new = args[:colon], args[colon+1:]
	case len(args) == 2:
		f.old, f.new = args[:1], args[1:]
	case len(args) > 2:
		return usage{fmt.Errorf("nothing says which of the %d files are old and which are new; write a colon between them: compare OLD1 OLD2 : NEW1 NEW2", len(args))}
	}
	if len(f.old) == 0 || len(f.new) == 0 || slices.Contains(f.new, between) {
		return usage{fmt.Errorf("a comparison is of files that runs wrote with --json, one old and one new at least; there are %d and %d: compare OLD NEW, or compare OLD1 OLD2 : NEW1 NEW2", len(f.old), len(f.new))}
	}
	return nil
}

func (f *comparing) run(c *cobra.Command) error {
	if !(f.percent >= 0 && f.percent <= 1000) {
		return usage{fmt.Errorf("a threshold is from 0 to 1000 %%, not %v", f.percent)}
	}
	if f.page != "" {
		if err := writable(f.page); err != nil {
			return usage{err}
		}
	}
	old, err := readAll(f.old)
	if err != nil {
		return err
	}
	latest, err := readAll(f.new)
	if err != nil {
		return err
	}
	found := compare.Compare(old, latest, f.percent/100)
	if !found.Common() {
		return usage{fmt.Errorf("%s is of %s and %s of %s, and they have no figure and no check in common; name runs of one scenario",
			strings.Join(f.old, ", "), old[0].Scenario, strings.Join(f.new, ", "), latest[0].Scenario)}
	}
	shown := found.Document()
	if err := report.Print(c.OutOrStdout(), shown); err != nil {
		return err
	}
	if f.page != "" {
		all := append([]*result.Document{shown}, titled("Now", latest)...)
		if err := writePage(f.page, append(all, titled("Before", old)...)...); err != nil {
			return err
		}
	}
	if !found.OK() && !f.noFail {
		return errWorse
	}
	return nil
}

// readAll reads the results in files.
func readAll(files []string) ([]*result.Document, error) {
	var all []*result.Document
	for _, file := range files {
		d, err := result.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// titled has the titles of runs say on which side they are.
func titled(side string, runs []*result.Document) []*result.Document {
	for _, d := range runs {
		d.Title = side + ": " + d.Title
	}
	return runs
}
