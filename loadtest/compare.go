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
var errWorse = errors.New("at least one figure or check got worse; the table shows which")

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
		Short: "Compare the figures of runs: better, worse or the same",
		Long: "Compare the figures of runs: better, worse or the same, by the 95 % interval of the change.\n\n" +
			"With several runs per side, separated by a colon, the interval also covers the spread\n" +
			"from run to run.",
		Args: func(_ *cobra.Command, args []string) error { return f.sides(args) },
	}
	c.Flags().StringVar(&f.page, "html", "", "also write the comparison and all runs as one HTML page to `FILE`")
	c.Flags().Float64Var(&f.percent, "threshold", 3, "ignore a change of up to `PERCENT`, 0 to 1000")
	c.Flags().BoolVar(&f.noFail, "no-fail", false, "exit with 0 if a figure or check got worse")
	c.Flags().StringArrayVar(&f.old, "old", nil, "report `FILE` of an old run; repeatable, use it with --new")
	c.Flags().StringArrayVar(&f.new, "new", nil, "report `FILE` of a new run; repeatable, use it with --old")
	c.RunE = func(c *cobra.Command, _ []string) error { return f.run(c) }
	return c
}

// sides finds out which files are the old runs and which the new ones.
func (f *comparing) sides(args []string) error {
	colon := slices.Index(args, between)
	switch flags := len(f.old)+len(f.new) > 0; {
	case flags && len(args) > 0:
		return usage{fmt.Errorf("the files %q have no flag; with --old and --new, name each file with one of them", args)}
	case flags:
	case colon >= 0:
		f.old, f.new = args[:colon], args[colon+1:]
	case len(args) == 2:
		f.old, f.new = args[:1], args[1:]
	case len(args) > 2:
		return usage{fmt.Errorf("%d files without a colon; write it between the old and the new runs: compare OLD1 OLD2 : NEW1 NEW2", len(args))}
	}
	if len(f.old) == 0 || len(f.new) == 0 || slices.Contains(f.new, between) {
		return usage{fmt.Errorf("got %d old and %d new files; name at least one of each, written by runs with --json: compare OLD NEW, or compare OLD1 OLD2 : NEW1 NEW2", len(f.old), len(f.new))}
	}
	return nil
}

func (f *comparing) run(c *cobra.Command) error {
	if !(f.percent >= 0 && f.percent <= 1000) {
		return usage{fmt.Errorf("--threshold is %v; write a percentage from 0 to 1000", f.percent)}
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
		return usage{fmt.Errorf("%s (%s) and %s (%s) have no figure and no check in common; name runs of the same command",
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
