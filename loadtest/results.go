package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scale"
	"github.com/hookfabric/hookfabric/loadtest/internal/tables"
	"github.com/hookfabric/hookfabric/schema"
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
		Example: "  loadtest compare old.json new.json\n  loadtest compare old1.json old2.json : new1.json new2.json",
		Args:    func(_ *cobra.Command, args []string) error { return f.sides(args) },
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	c.Flags().StringVar(&f.page, "html", "", "also write the comparison and all runs as one HTML page to `FILE`")
	c.Flags().Float64Var(&f.percent, "threshold", 3, "ignore a change of up to `PERCENT`, 0 to 1000")
	c.Flags().BoolVar(&f.noFail, "no-fail", false, "exit with 0 if a figure or check got worse")
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
	if err := writable(f.page); err != nil {
		return usage{err}
	}
	old, err := readAll(f.old)
	if err != nil {
		return err
	}
	latest, err := readAll(f.new)
	if err != nil {
		return err
	}
	found := report.Compare(old, latest, f.percent/100)
	if !found.Common() {
		return usage{fmt.Errorf("%s (%s) and %s (%s) have no figure and no check in common; name runs of the same command",
			strings.Join(f.old, ", "), old[0].Scenario, strings.Join(f.new, ", "), latest[0].Scenario)}
	}
	shown := found.Document()
	if err := report.Print(c.OutOrStdout(), shown); err != nil {
		return err
	}
	if f.page != "" {
		all := append([]*report.Document{shown}, titled("Now", latest)...)
		if err := writePage(f.page, append(all, titled("Before", old)...)...); err != nil {
			return err
		}
	}
	if !found.OK() && !f.noFail {
		return errWorse
	}
	return nil
}

func readAll(files []string) ([]*report.Document, error) {
	var all []*report.Document
	for _, file := range files {
		d, err := report.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// titled adds the side to the titles of runs.
func titled(side string, runs []*report.Document) []*report.Document {
	for _, d := range runs {
		d.Title = side + ": " + d.Title
	}
	return runs
}

// showCommand makes tables, a page and pictures from the files of earlier runs, in the
// current format.
func showCommand() *cobra.Command {
	f := new(measuring)
	c := &cobra.Command{
		Use:     "show RUN.json [RUN.json ...]",
		Short:   "Show the results of earlier runs again: as tables, a page or pictures",
		Example: "  loadtest show fleet.json --html fleet.html",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage{errors.New("name at least one file that a run wrote with --json: loadtest show RUN.json")}
			}
			return nil
		},
	}
	c.Flags().StringVar(&f.html, "html", "", "also write all runs with their plots as one HTML page to `FILE`")
	c.Flags().StringVar(&f.svg, "svg", "", "also write each plot as an SVG picture to the folder `DIR`")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := f.places(); err != nil {
			return err
		}
		runs, err := readAll(args)
		if err != nil {
			return err
		}
		return errors.Join(report.Print(c.OutOrStdout(), runs...), f.drawn(runs...))
	}
	return c
}

// tablesCommand fills the tables of README.md and loadtest/BENCHMARKS.md.
func tablesCommand() *cobra.Command {
	var into string
	c := &cobra.Command{
		Use: "tables DIR", Short: "Write Markdown tables from the JSON reports in a folder", Hidden: true,
		Example: "  loadtest tables loadtest/figures --into README.md",
		Args:    oneArg("name one folder with reports: loadtest tables DIR"),
	}
	c.Flags().StringVar(&into, "into", "", "write the tables between the markers of the page `FILE` instead of printing them")
	c.RunE = func(c *cobra.Command, args []string) error {
		if into == "" {
			return printTables(c, args[0])
		}
		page, err := os.ReadFile(into)
		if err != nil {
			return fmt.Errorf("reading the page: %w", err)
		}
		filled, err := tables.Fill(string(page), args[0])
		if err != nil {
			return err
		}
		if err := os.WriteFile(into, []byte(filled), 0o644); err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
		return nil
	}
	return c
}

func printTables(c *cobra.Command, dir string) error {
	for _, name := range tables.Names() {
		view, err := tables.View(dir, name)
		if err != nil {
			return err
		}
		if view != "" {
			fmt.Fprintf(c.OutOrStdout(), "## %s\n\n%s\n", name, view)
		}
	}
	return nil
}

func modelCommand() *cobra.Command {
	f, units, page := scale.Default(), "", ""
	c := &cobra.Command{
		Use:     "model",
		Short:   "Calculate the needs of a fleet of any size from the figures of scale; measures nothing",
		Example: "  loadtest model --agents 50000 --units scale.json",
		Args:    noArgs,
	}
	for _, a := range f.Assumptions() {
		c.Flags().Float64Var(a.Value, a.Flag, *a.Value, a.Usage)
	}
	c.Flags().StringVar(&units, "units", "", "read the costs from `FILE`, which 'loadtest scale --json' wrote (default: bundled costs)")
	c.Flags().StringVar(&page, "html", "", "also write the tables as an HTML page to `FILE`")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := errors.Join(f.Check(), writable(page)); err != nil {
			return usage{err}
		}
		u, origin, err := unitsOf(units)
		if err != nil {
			return err
		}
		d := f.Document(&u)
		d.Scenario, d.Command, d.Started = c.Name(), typed(c), time.Now().UTC().Round(time.Millisecond)
		d.Notes = append(d.Notes, origin)
		return errors.Join((&measuring{html: page}).drawn(d), report.Print(c.OutOrStdout(), d))
	}
	return c
}

// bundledScale is the report of the scale run in loadtest/BENCHMARKS.md.
//
//go:embed figures/scale.json
var bundledScale []byte

// unitsOf returns the units of a report of scale, and where and when they were measured.
// Without a file they are those of loadtest/BENCHMARKS.md.
func unitsOf(file string) (u scale.Units, origin string, err error) {
	name, body, more := "the bundled run", bundledScale, " For your own machine, run `loadtest scale --json FILE` and use --units FILE."
	if file != "" {
		name, more = file, ""
		if body, err = os.ReadFile(file); err != nil {
			return u, "", fmt.Errorf("reading the costs: %w", err)
		}
	}
	var r scale.Report
	if err := schema.Unmarshal(body, &r); err != nil {
		return u, "", fmt.Errorf("%s is not a report of 'loadtest scale': %w", name, err)
	}
	if r.Scenario != "scale" {
		return u, "", fmt.Errorf("%s is a report of %q; name a file that 'loadtest scale --json' wrote", name, r.Scenario)
	}
	return r.Units, fmt.Sprintf("Costs were measured on %s, on %s.%s", r.Started.UTC().Format("2006-01-02"), r.Machine, more), nil
}
