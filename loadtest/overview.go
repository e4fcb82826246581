package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/fleet"
	"github.com/hookfabric/hookfabric/loadtest/live"
	"github.com/hookfabric/hookfabric/loadtest/report"
	"github.com/hookfabric/hookfabric/loadtest/report/sketch"
	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// overview runs without a subcommand: a short bench, and then a fleet of agents. Together
// they take less than a minute.
type overview struct {
	measuring
	out  string
	long time.Duration
}

// overviewFlags are those of the command without a name.
func overviewFlags(c *cobra.Command) *overview {
	o := new(overview)
	c.Flags().StringVar(&o.out, "out", "", "write report.html, bench.json and fleet.json to the folder `DIR` (default: a new temporary folder)")
	c.Flags().DurationVar(&o.long, "for", 20*time.Second, "duration of the load of 200 agents")
	c.Flags().StringVar(&o.log, "log", "", "write the log of all processes to `FILE` (default: a temporary file)")
	return o
}

// run runs all of it. Wrong answers are a failure; what is slow in so short a time
// on a machine that does other things as well is not.
func (o *overview) run(c *cobra.Command) error {
	load := o.load()
	if wrong := load.Check(); len(wrong) > 0 {
		return usage{errors.New(wrong[0].String())}
	}
	if o.out != "" {
		if err := writableDir(o.out); err != nil {
			return usage{err}
		}
	}
	if err := o.places(); err != nil {
		return err
	}
	shown, err := live.Start(live.Options{Scenario: c.Name(), Progress: c.ErrOrStderr()})
	if err != nil {
		return err
	}
	quick, fleets, err := o.measured(c, shown, load)
	if err = errors.Join(err, shown.Close()); err != nil {
		return err
	}
	file, err := o.written(quick, fleets)
	if err != nil {
		return err
	}
	if err := o.print(c.OutOrStdout(), quick, fleets); err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "\nReport with plots: %s\n", file)
	if !fleets.OK() {
		err = errBudget
	}
	return interrupted(c, err)
}

// load is what the fleet does.
func (o *overview) load() *scenario.Scenario {
	load := scenario.Default()
	load.For, load.Warm = schema.Duration(o.long), schema.Duration(max(min(load.Warm.Std(), o.long/4), 0))
	return &load
}

// measured does both runs, one after the other. Where the first is interrupted, or the
// second before it shows anything, there are no agents in the second's document.
func (o *overview) measured(c *cobra.Command, shown *live.Run, load *scenario.Scenario) (*bench.Report, *result.Document, error) {
	quick, err := o.acted(c, shown, func(s stage) (outcome, error) {
		b := bench.Quick()
		b.Dir, b.Crew, b.Progress = s.dir, s.crew, s.live
		return bench.Run(c.Context(), b)
	})
	if err != nil {
		return nil, nil, err
	}
	b := quick.(*bench.Report)
	b.Scenario, b.Title = "bench", "Cost of a call compared with a bare request-reply, measured briefly"
	b.Notes = append(b.Notes, "Measured for a few seconds. `loadtest bench` measures for minutes and checks the budgets.")
	fleets, err := o.acted(c, shown, func(s stage) (outcome, error) {
		return fleet.Run(c.Context(), load, fleet.Stage{Dir: s.dir, Crew: s.crew, Progress: s.live, Live: s.live})
	})
	if err != nil && c.Context().Err() != nil {
		return b, &result.Document{Scenario: "fleet", Title: "No fleet: " + err.Error(), Machine: b.Machine}, nil //nolint:nilerr // the document says it
	}
	if err != nil {
		return nil, nil, err
	}
	return b, fleets.(*result.Document), nil
}

// written writes the page and the figures, and says where the page is.
func (o *overview) written(quick *bench.Report, fleets *result.Document) (file string, err error) {
	dir := o.out
	if dir == "" {
		if dir, err = os.MkdirTemp("", "loadtest-report-"); err != nil {
			return "", fmt.Errorf("creating a folder for the report: %w", err)
		}
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating a folder for the report: %w", err)
	}
	file = filepath.Join(dir, "report.html")
	return file, errors.Join(
		writePage(file, fleets, quick.Result()),
		write(filepath.Join(dir, "bench.json"), quick),
		write(filepath.Join(dir, "fleet.json"), fleets),
	)
}

// print prints a summary and a picture.
func (o *overview) print(w io.Writer, quick *bench.Report, fleets *result.Document) error {
	d := &result.Document{
		Title: "Cost of a call, and latency of a fleet of agents", Machine: fleets.Machine, Started: quick.Started,
		Took: quick.Took + fleets.Took, Scenario: "overview", Command: fleets.Command,
		Tables: []result.Table{costs(quick), fared(fleets)}, Checks: fleets.Checks,
	}
	for _, of := range []*result.Document{quick.Result(), fleets} {
		if of.Interrupted != "" {
			d.Notes = append(d.Notes, of.Notes[0])
		}
	}
	if err := report.Print(w, d); err != nil {
		return err
	}
	for _, p := range fleets.Plots[:min(len(fleets.Plots), 1)] {
		fmt.Fprintf(w, "\n%s", sketch.Areas(p, sketch.Size{Width: 72, Height: 10}))
	}
	return nil
}

// told are the rows of a bench that tell most.
func told() []string {
	return []string{
		"raw", "no hook matches", "3 hooks inside broker", "3 hooks of a remote pool", "HTTP webhook, 3 hooks", "HTTP in two stages, 3 hooks", "command hook per call",
	}
}

// costs is the table of what calls cost.
func costs(b *bench.Report) result.Table {
	t := result.Table{
		Title:   "One call, compared with a bare request-reply through the same server (raw)",
		Columns: []string{"", "p50, 1 caller", "× raw", "p50, 16 callers", "× raw", "calls, 16 callers"},
		Note:    "Measured briefly, for the order of magnitude. `loadtest bench` measures longer and checks the budgets.",
	}
	for _, name := range told() {
		one, many := absolute(b, name, 1), absolute(b, name, 16)
		if one == nil || many == nil {
			continue
		}
		t.Rows = append(t.Rows, []string{
			name, units.Value(one.P50.Std().Seconds(), "s"), ratio(b, name, 1),
			units.Value(many.P50.Std().Seconds(), "s"), ratio(b, name, 16), units.Value(many.PerSecond, "/s"),
		})
	}
	return t
}

func absolute(b *bench.Report, name string, callers int) *bench.Absolute {
	i := slices.IndexFunc(b.Absolute, func(a bench.Absolute) bool { return a.Name == name && a.Callers == callers })
	if i < 0 {
		return nil
	}
	return &b.Absolute[i]
}

// ratio is that of a p50 to the bare one, of the same repetitions.
func ratio(b *bench.Report, name string, callers int) string {
	for _, r := range b.Rows {
		if r.Name == name && r.Callers == callers && r.Metric == "p50" {
			return fmt.Sprintf("%.2f", r.Ratio)
		}
	}
	return "1"
}

// fared is the table of how the fleet fared.
func fared(d *result.Document) result.Table {
	t := result.Table{
		Title: d.Title, Columns: []string{"", "", "95 % interval"},
		Note: "A latency counts from the planned time of the call.",
	}
	for _, f := range d.Figures {
		t.Rows = append(t.Rows, []string{
			f.Name, report.Value(f), report.Interval(f),
		})
	}
	return t
}
