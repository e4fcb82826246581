package tables

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/cluster"
	"github.com/hookfabric/hookfabric/loadtest/report"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/schema"
)

// views maps names to what makes a view of a folder.
func views() map[string]func(dir string) (string, error) {
	return map[string]func(string) (string, error){
		"runs":     runs,
		"budgets":  budgets,
		"webhooks": webhooks,
		"costs":    costs,
		"over":     over,
		"loop":     whole("loop"),
		"record":   whole("record"),
		"notice":   whole("notice"),
		"state":    whole("state"),
		"growth":   whole("scale"),
		"flat":     flat,
		"model":    modelled,
		"knee":     whole("saturate"),
		"faults":   whole("faults"),
		"overload": whole("overload"),
		"freeze":   whole("freeze"),
		"cluster":  clustered,
	}
}

// files are the runs whose files are looked for, in the order in which they are told of.
func files() []string {
	return []string{"bench", "record", "loop", "shim", "notice", "state", "scale", "saturate", "faults", "overload", "freeze", "cluster"}
}

// ratios is what views read of the reports of bench, shim and state besides their documents.
type ratios struct {
	result.Document
	Rows     []bench.Row      `json:"rows"`
	Absolute []bench.Absolute `json:"absolute"`
}

// read reads the file of a run into v; false: there is none.
func read(dir, run string, v any) (bool, error) {
	name := filepath.Join(dir, run+".json")
	body, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading figures: %w", err)
	}
	if err := schema.Unmarshal(body, v); err != nil {
		return false, fmt.Errorf("%s is not what %s writes: %w", name, run, err)
	}
	return true, nil
}

// whole is the view of all that a run's document says, but for the figures of which
// its tables are: those of growth are hundreds.
func whole(run string) func(dir string) (string, error) {
	return func(dir string) (string, error) {
		var d result.Document
		if there, err := read(dir, run, &d); !there {
			return "", err
		}
		if run == "scale" || run == "loop" || run == "state" {
			d.Figures = nil
		}
		return d.Title + "\n\n" + report.Markdown(&d), nil
	}
}

// clustered is the view of a cluster's run, but for what each part's load was like: that
// is as it is without faults.
func clustered(dir string) (string, error) {
	var d result.Document
	if there, err := read(dir, "cluster", &d); !there {
		return "", err
	}
	d.Tables = slices.DeleteFunc(d.Tables, func(t result.Table) bool {
		part, _, ok := strings.Cut(t.Title, ": ")
		return ok && slices.Contains(cluster.Parts(), part)
	})
	return d.Title + "\n\n" + report.Markdown(&d), nil
}

// runs is which runs the figures are of.
func runs(dir string) (string, error) {
	t := result.Table{Columns: []string{"file", "command", "when", "took", "load before", "code", ""}}
	machines := []string{}
	for _, run := range files() {
		var d result.Document
		there, err := read(dir, run, &d)
		if err != nil {
			return "", err
		}
		if !there {
			continue
		}
		took := time.Duration(d.Took * float64(time.Second)).Round(time.Second)
		t.Rows = append(t.Rows, []string{
			run + ".json", "`" + d.Command + "`", d.Started.UTC().Format("2006-01-02 15:04 UTC"), took.String(),
			fmt.Sprintf("%.1f", d.Machine.Load), d.Machine.Revision, report.Summary(&d),
		})
		d.Machine.Load, d.Machine.Revision = 0, "" // they differ, and stand in the table
		if here := strings.ReplaceAll(d.Machine.String(), ", load before 0.0", ""); !slices.Contains(machines, here) {
			machines = append(machines, here)
		}
	}
	if len(t.Rows) == 0 {
		return "", nil
	}
	return strings.Join(machines, "\n\n") + "\n\n" + report.MarkdownTable(t), nil
}

// over is all that is over its budget, and every promise that was not kept.
func over(dir string) (string, error) {
	t := result.Table{Columns: []string{"run", "what", "value", "95 % interval", "budget"}}
	some := false
	for _, run := range files() {
		var d result.Document
		there, err := read(dir, run, &d)
		if err != nil {
			return "", err
		}
		some = some || there
		t.Rows = append(t.Rows, beyond(run, &d)...)
	}
	switch {
	case !some:
		return "", nil
	case len(t.Rows) == 0:
		return "Nothing: every budget was kept, and every promise.\n", nil
	}
	return report.MarkdownTable(t), nil
}

// beyond are the rows of one run.
func beyond(run string, d *result.Document) (rows [][]string) {
	for _, f := range d.Figures {
		if !f.OK() {
			rows = append(rows, []string{run, f.Name, report.Value(f), report.Interval(f), report.Budget(f)})
		}
	}
	for _, c := range d.Checks {
		if !c.OK() {
			rows = append(rows, []string{run, c.Name, fmt.Sprintf("wrong %d times of %d", c.Wrong, c.Seen), "", "never"})
		}
	}
	return rows
}
