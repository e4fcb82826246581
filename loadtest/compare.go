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

// errWorse is returned if a figure or check got worse.
var errWorse = errors.New("at least one figure or check got worse; the table shows which")

// comparing are the flags and arguments of compare.
type comparing struct {
	page     string
	percent  float64
	noFail   bool
	old, new []string
}

// between separates old runs from new ones.
const between = ":"

func compareCommand() *cobra.Command {
	f := new(comparing)
	c := &cobra.Command{
		Use:   "compare OLD.json [OLD.json ...] [:] NEW.json [NEW.json ...]",
		Short: "Compare the figures of runs: better, worse or the same",
		Long: "Compare the figures of runs: better, worse or the same, by a Mann-Whitney U test.\n\n" +
			"With at least four runs per side, separated by a colon, each run is a sample. Otherwise\n" +
			"the samples are the repetitions in the runs.",
		Args: func(_ *cobra.Command, args []string) error { return f.sides(args) },
	}
	c.Flags().StringVar(&f.page, "html", "", "also write the comparison and all runs as one HTML page to `FILE`")
	c.Flags().Float64Var(&f.percent, "threshold", 3, "ignore a change of up to `PERCENT`, 0 to 1000")
	c.Flags().BoolVar(&f.noFail, "no-fail", false, "exit with 0 if a figure or check got worse")
	c.RunE = func(c *cobra.Command, _ []string) error { return f.run(c) }
	return c
}

// sides divides the files into old and new runs.
func (f *comparing) sides(args []string) error {
	if i := slices.Index(args, between); i >= 0 {
		f.old, f.new = args[:i], args[i+1:]
	} else if len(args) == 2 {
		f.old, f.new = args[:1], args[1:]
	}
	if len(f.old) == 0 || len(f.new) == 0 || slices.Contains(f.new, between) {
		return usage{fmt.Errorf("got %q; name files that runs wrote with --json: compare OLD NEW, or several on each side of a colon: compare OLD1 OLD2 : NEW1 NEW2", args)}
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

// titled adds the side to the titles of runs.
func titled(side string, runs []*result.Document) []*result.Document {
	for _, d := range runs {
		d.Title = side + ": " + d.Title
	}
	return runs
}
