package tables

import (
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scale"
)

// A series is one series of scale: its label, the start of the names of its figures, and its
// first and last step.
type series struct{ text, name, first, last, of string }

func allSeries() []series {
	return []series{
		{"hooks on one call, inside the broker", "hooks: inside broker", "1", "16", "hook"},
		{"hooks on one call, on a worker", "hooks: of a remote pool", "1", "16", "hook"},
		{"hooks configured by tool name", "matchers: of all agents, by tools' names, asked before", "1", "10,000", "hook"},
		{"hooks configured by tool name, tool not seen before", "matchers: of all agents, by tools' names, a new tool each time", "1", "10,000", "hook"},
		{"hooks configured by `*` globs, tool not seen before", "matchers: of all agents, by globs, a new tool each time", "1", "10,000", "hook"},
		{"hooks configured per agent", "matchers: one for each agent, asked before", "1", "10,000", "hook"},
		{"hooks configured per agent, agent not seen before", "matchers: one for each agent, a new agent each time", "1", "10,000", "hook"},
		{"agents", "agents", "10", "10,000", "agent"},
		{"connections, 16 in use", "connections", "500", "10,000", "connection"},
		{"waiting items of other agents", "pending: for others", "0", "100,000", "item"},
		{"waiting items of the agent, not due", "pending: for the agent, not now", "0", "10,000", "item"},
	}
}

// at returns the name of a figure at a step.
func (s series) at(step, figure string) string {
	between, of := ", ", s.of
	if s.name == s.of+"s" {
		between = ": "
	}
	if step != "1" {
		of += "s"
	}
	return s.name + between + step + " " + of + ", " + figure
}

// growth shows how the cost of a call grows: the first and the last step of each series of scale.
func growth(dir string) (string, error) {
	var d report.Document
	if there, err := read(dir, "scale", &d); !there {
		return "", err
	}
	t := report.Table{Columns: []string{"what grows", "from", "to", "CPU per call", "last : first"}}
	for _, s := range allSeries() {
		var found []report.Figure
		for _, name := range []string{s.at(s.first, "CPU of a call"), s.at(s.last, "CPU of a call"), s.at(s.last, "CPU : the first")} {
			i := slices.IndexFunc(d.Figures, func(f report.Figure) bool { return f.Name == name })
			if i < 0 {
				return "", fmt.Errorf("scale.json has no figure %q; correct the series in loadtest/internal/tables/growth.go", name)
			}
			found = append(found, d.Figures[i])
		}
		t.Rows = append(t.Rows, []string{
			s.text, s.first, s.last, report.Value(found[0].Value, "s") + " → " + report.Value(found[1].Value, "s"), figure(&d, found[2].Name),
		})
	}
	return report.MarkdownTable(t), nil
}

// needs returns the machines and rates that a million agents need, calculated from
// scale.json.
func needs(dir string) (string, error) {
	var r scale.Report
	if there, err := read(dir, "scale", &r); !there {
		return "", err
	}
	return report.MarkdownTable(scale.Default().Needed(&r.Units)), nil
}
