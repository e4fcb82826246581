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

// The columns that growth reads of the tables of scale.
const (
	cpuColumn   = "broker's CPU"
	ratioColumn = "CPU : the first [95 %]"
)

// series are the labels of the series of scale: the title of a table and, if it has several, the
// name of the series in it.
func series() []label {
	const matching = "Hooks in the configuration, of which one matches: "
	return []label{
		{"hooks on one call, inside the broker", "Hooks on one call: inside broker"},
		{"hooks on one call, on a worker", "Hooks on one call: of a remote pool"},
		{"hooks configured by tool name", matching + "of all agents, by tools' names, asked before"},
		{"hooks configured by tool name, tool not seen before", matching + "of all agents, by tools' names, a new tool each time"},
		{"hooks configured by `*` globs, tool not seen before", matching + "of all agents, by globs, a new tool each time"},
		{"hooks configured per agent", matching + "one for each agent, asked before"},
		{"hooks configured per agent, agent not seen before", matching + "one for each agent, a new agent each time"},
		{"agents", "Agents that ask in turn"},
		{"connections, 16 in use", "Connections, of which 16 are in use"},
		{"waiting items of other agents", "Items that wait: for others"},
		{"waiting items of the agent, not due", "Items that wait: for the agent, not now"},
	}
}

// growth shows how the cost of a call grows: the first and the last step of each series of scale.
func growth(dir string) (string, error) {
	var d result.Document
	if there, err := read(dir, "scale", &d); !there {
		return "", err
	}
	t := result.Table{Columns: []string{"what grows", "from", "to", "broker's CPU per call", "CPU with the worker's, last : first"}}
	all := ends(&d)
	for _, s := range series() {
		i := slices.IndexFunc(all, func(row []string) bool { return row[0] == s.name })
		if i < 0 {
			return "", fmt.Errorf("scale.json has no series %q with the columns %q and %q; correct its name in loadtest/tables/growth.go", s.name, cpuColumn, ratioColumn)
		}
		t.Rows = append(t.Rows, append([]string{s.text}, all[i][1:]...))
	}
	return report.MarkdownTable(t), nil
}

// ends returns a row for each series: its name, its first and last step, and what they cost.
func ends(d *result.Document) (all [][]string) {
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
			all = append(all, []string{strings.TrimSuffix(part.Title+": "+of, ": "), number(from), number(to), rows[0][cpu] + " → " + last[cpu], last[ratio]})
			rows = rows[n:]
		}
	}
	return all
}

// step splits the label of a row into the series that it belongs to, if its table has several,
// and its step.
func step(label string) (of, at string) {
	const between = ", "
	if i := strings.LastIndex(label, between); i >= 0 {
		return label[:i], label[i+len(between):]
	}
	return "", label
}

// number returns a step without its noun.
func number(step string) string {
	n, _, _ := strings.Cut(step, " ")
	return n
}

// needs are the machines and rates that a million agents need, calculated from scale.json.
func needs(dir string) (string, error) {
	var r scale.Report
	if there, err := read(dir, "scale", &r); !there {
		return "", err
	}
	return report.MarkdownTable(model.Default().Needed(&r.Units)), nil
}
