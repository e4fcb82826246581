package tables

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
)

// each reads the files of all runs in the folder.
func each(dir string, do func(run string, d *report.Document)) error {
	for _, run := range files() {
		var d report.Document
		there, err := read(dir, run, &d)
		if err != nil {
			return err
		}
		if there {
			do(run, &d)
		}
	}
	return nil
}

// runs lists the runs with figures.
func runs(dir string) (string, error) {
	t := report.Table{Columns: []string{"command", "date", "took", "load before", "code", "result"}}
	machines := []string{}
	err := each(dir, func(_ string, d *report.Document) {
		took := time.Duration(d.Took * float64(time.Second)).Round(time.Second)
		t.Rows = append(t.Rows, []string{
			"`" + d.Command + "`", d.Started.UTC().Format(time.DateOnly), took.String(),
			fmt.Sprintf("%.1f", d.Machine.Load), d.Machine.Revision, report.Summary(d),
		})
		d.Machine.Load, d.Machine.Revision = 0, "" // they differ, and are in the table
		if here := strings.ReplaceAll(d.Machine.String(), ", load before 0.0", ""); !slices.Contains(machines, here) {
			machines = append(machines, here)
		}
	})
	if err != nil || len(t.Rows) == 0 {
		return "", err
	}
	return strings.Join(machines, "\n\n") + "\n\n" + report.MarkdownTable(t), nil
}

// checks returns the checks of all runs, one row for each name.
func checks(dir string) (string, error) {
	var all report.Document
	of := map[string][]string{}
	err := each(dir, func(run string, d *report.Document) {
		for _, c := range d.Checks {
			all.Check(c.Name).Add(c)
			of[c.Name] = append(of[c.Name], run)
		}
	})
	if err != nil || len(all.Checks) == 0 {
		return "", err
	}
	t := report.Table{Columns: []string{"check", "seen", "wrong", "runs"}}
	for _, c := range all.Checks {
		t.Rows = append(t.Rows, []string{c.Name, count(c.Seen), count(c.Wrong), strings.Join(of[c.Name], ", ")})
	}
	return report.MarkdownTable(t), nil
}

func count(n int64) string { return report.Thousands(fmt.Sprint(n)) }

// over lists the figures that exceed their budget and the checks that failed.
func over(dir string) (string, error) {
	t := report.Table{Columns: []string{"run", "figure or check", "value", "95 % interval", "budget"}}
	some := false
	err := each(dir, func(run string, d *report.Document) {
		some = true
		t.Rows = append(t.Rows, beyond(run, d)...)
	})
	switch {
	case err != nil || !some:
		return "", err
	case len(t.Rows) == 0:
		return "Every budget was kept, and every check held.\n", nil
	}
	return report.MarkdownTable(t), nil
}

// beyond returns the rows of one run.
func beyond(run string, d *report.Document) (rows [][]string) {
	for _, f := range d.Figures {
		if !f.OK() {
			rows = append(rows, []string{run, f.Name, report.Text(f), report.Interval(f), report.Budget(f)})
		}
	}
	for _, c := range d.Checks {
		if !c.OK() {
			rows = append(rows, []string{run, c.Name, fmt.Sprintf("wrong %d times of %d", c.Wrong, c.Seen), "", "never"})
		}
	}
	return rows
}
