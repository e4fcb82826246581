package tables

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/model"
	"github.com/hookfabric/hookfabric/loadtest/report"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/scale"
)

// The columns of a table of growth that say how it ends.
const (
	cpuColumn   = "broker's CPU"
	ratioColumn = "CPU : the first [95 %]"
)

// flat is how the cost of a call grows with what there is much of: of each row of growth
// only the first step and the last one.
func flat(dir string) (string, error) {
	var d result.Document
	if there, err := read(dir, "scale", &d); !there {
		return "", err
	}
	t := result.Table{Columns: []string{"what grows", "from", "to", "broker's CPU of a call, first → last", "CPU with the worker's, last : first [95 %]"}}
	for _, part := range d.Tables {
		cpu, ratio := slices.Index(part.Columns, cpuColumn), slices.Index(part.Columns, ratioColumn)
		if cpu < 0 || ratio < 0 {
			continue
		}
		for rows := part.Rows; len(rows) > 0; {
			of, from := step(rows[0][0])
			n := 1
			for n < len(rows) {
				if other, _ := step(rows[n][0]); other != of {
					break
				}
				n++
			}
			last := rows[n-1]
			_, to := step(last[0])
			t.Rows = append(t.Rows, []string{
				strings.TrimSuffix(part.Title+": "+of, ": "), from, to, rows[0][cpu] + " → " + last[cpu], last[ratio],
			})
			rows = rows[n:]
		}
	}
	if len(t.Rows) == 0 {
		return "", fmt.Errorf("scale.json has no table with the columns %q and %q", cpuColumn, ratioColumn)
	}
	return report.MarkdownTable(t), nil
}

// step takes the label of a row apart: what it is a step of, if its table has several
// such, and how far it is.
func step(label string) (of, at string) {
	const between = ", "
	if i := strings.LastIndex(label, between); i >= 0 {
		return label[:i], label[i+len(between):]
	}
	return "", label
}

// modelled is what a million agents take, by what one of each cost.
func modelled(dir string) (string, error) {
	var r scale.Report
	if there, err := read(dir, "scale", &r); !there {
		return "", err
	}
	return report.Markdown(model.Default().Document(&r.Units)), nil
}
