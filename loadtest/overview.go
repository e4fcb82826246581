package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// overview runs without a subcommand: a short bench, and then a fleet of agents. Together
// they take less than a minute.
type overview struct {
	measuring
	out  string
	long time.Duration
}

// overviewFlags adds the flags of the command without a name.
func overviewFlags(c *cobra.Command) *overview {
	o := new(overview)
	c.Flags().StringVar(&o.out, "out", "", "write report.html, bench.json and fleet.json to the folder `DIR` (default: a new temporary folder)")
	c.Flags().DurationVar(&o.long, "for", 20*time.Second, "duration of the load of 200 agents")
	c.Flags().StringVar(&o.log, "log", "", "write the log of all processes to `FILE` (default: a temporary file)")
	return o
}

// run fails for wrong answers, not for slow ones: it is too short for budgets.
func (o *overview) run(c *cobra.Command) error {
	load := scenario.Default()
	load.For, load.Warm = schema.Duration(o.long), schema.Duration(max(min(load.Warm.Std(), o.long/4), 0))
	if err := errors.Join(load.Wrong(), writableDir(o.out)); err != nil {
		return usage{err}
	}
	if err := o.places(); err != nil {
		return err
	}
	shown, err := report.StartLive(report.LiveOptions{Scenario: c.Name(), Progress: c.ErrOrStderr()})
	if err != nil {
		return err
	}
	quick, fleets, err := o.measured(c, shown, &load)
	if err = errors.Join(err, shown.Close()); err != nil {
		return err
	}
	file, err := o.written(quick, fleets)
	if err != nil {
		return err
	}
	calls := &report.Document{Title: quick.Title, Tables: []report.Table{costs(quick)}}
	if quick.Interrupted != "" {
		calls.Notes = quick.Notes[:1]
	}
	if err := report.Print(c.OutOrStdout(), calls, fleets); err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "\nReport with plots: %s\n", file)
	if !fleets.OK() {
		err = errBudget
	}
	return interrupted(c, err)
}

// measured makes both runs, one after the other. The second document is empty if the run is
// interrupted before the fleet has results.
func (o *overview) measured(c *cobra.Command, shown *report.Live, load *scenario.Scenario) (b *bench.Report, fleets *report.Document, err error) {
	_, err = o.acted(c, shown, func(s stage) (outcome, error) {
		b, err = bench.Calls(c.Context(), bench.Options{Quick: true, Dir: s.Dir, Crew: s.Crew, Progress: s.Live})
		return b, err
	})
	if err != nil {
		return nil, nil, err
	}
	b.Scenario, b.Title = "bench", "Cost of a call compared with a bare request-reply, measured briefly"
	b.Notes = append(b.Notes, "Measured for a few seconds. `loadtest bench` measures for minutes and checks the budgets.")
	_, err = o.acted(c, shown, func(s stage) (outcome, error) {
		fleets, err = fleet.Run(c.Context(), load, s)
		return fleets, err
	})
	if err != nil && c.Context().Err() != nil {
		return b, &report.Document{Scenario: "fleet", Title: "No fleet: " + err.Error(), Machine: b.Machine}, nil
	}
	return b, fleets, err
}

// written writes the page and the figures, and returns the name of the page.
func (o *overview) written(quick *bench.Report, fleets *report.Document) (file string, err error) {
	dir := o.out
	if dir == "" {
		if dir, err = os.MkdirTemp("", "loadtest-report-"); err != nil {
			return "", fmt.Errorf("creating a folder for the report: %w", err)
		}
	}
	file = filepath.Join(dir, "report.html")
	return file, errors.Join(
		writePage(file, fleets, quick.Result()),
		write(filepath.Join(dir, "bench.json"), quick),
		write(filepath.Join(dir, "fleet.json"), fleets),
	)
}

// costs returns the table of some rows of a bench.
func costs(b *bench.Report) report.Table {
	t := report.Table{
		Title:   "One call, compared with a bare request-reply through the same server (raw)",
		Columns: []string{"", "callers", "p50", "× raw", "calls"},
		Note:    "Measured briefly, for the order of magnitude. `loadtest bench` measures longer and checks the budgets.",
	}
	shown := []string{"raw", "no hook", "broker, 3 hooks", "pool, 3 hooks", "webhook, 3 hooks", "two HTTP stages, 3 hooks", "command per call"}
	for _, a := range b.Absolute {
		if !slices.Contains(shown, a.Name) {
			continue
		}
		ratio := "1"
		for _, r := range b.Rows {
			if r.Name == a.Name && r.Callers == a.Callers && r.Metric == "p50" {
				ratio = fmt.Sprintf("%.2f", r.Ratio)
			}
		}
		t.Rows = append(t.Rows, []string{a.Name, fmt.Sprint(a.Callers), report.Value(a.P50.Std().Seconds(), "s"), ratio, report.Value(a.PerSecond, "/s")})
	}
	return t
}
