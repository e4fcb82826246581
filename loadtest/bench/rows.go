package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// raw is the row that all ratios are to.
const raw = "raw"

// many is how many callers there are where there is more than one.
const many = 16

// The metrics of a report.
const (
	p50        = "p50"
	throughput = "throughput"
)

// A cell is one figure of a row.
type cell struct {
	metric  string
	callers int
}

// cells lists every row's figures, in the order in which limits are given.
func cells() [3]cell {
	return [3]cell{{p50, 1}, {p50, many}, {throughput, many}}
}

// of reads the cell from what a repetition showed of a row.
func (c cell) of(s sample) float64 {
	f := s[c.callers]
	if c.metric == throughput {
		return f.PerSecond
	}
	return float64(f.P50)
}

// sample is what one repetition showed of one row, by the number of callers.
type sample map[int]figures

// A contender is one thing that is measured.
type contender struct {
	name   string
	target roles.Target
}

// counts are the numbers of hooks that everything is measured with.
func counts() []int { return []int{1, 3, 8} }

// The names of rows that comparisons speak of.
func inBroker(hooks int) string  { return counted(hooks) + " inside broker" }
func inPool(hooks int) string    { return counted(hooks) + " of a remote pool" }
func byWebhook(hooks int) string { return "HTTP webhook, " + counted(hooks) }
func byStages(hooks int) string  { return "HTTP in two stages, " + counted(hooks) }

const (
	noMatch  = "no hook matches"
	twoPools = "two pools in sequence"
	command  = "command hook per call"
	// The way of a call with nothing on it but NATS.
	bareInside = "bare, inside the server's process"
	bareRelay  = "bare, from there to another process"
)

func counted(hooks int) string {
	if hooks == 1 {
		return "1 hook"
	}
	return fmt.Sprintf("%d hooks", hooks)
}

// contenders lists everything that is measured, in the order of the table of
// absolute figures; the first is what the others are divided by.
func contenders() []contender {
	all := []contender{
		{raw, roles.Target{Way: roles.Raw, Hooks: 1}},
		{bareInside, roles.Target{Way: roles.InsideServer, Hooks: 1}},
		{bareRelay, roles.Target{Way: roles.Relayed, Hooks: 1}},
		{noMatch, roles.Target{Way: roles.Fabric, Tool: "none"}},
	}
	each := func(name func(hooks int) string, way roles.Way, pool string) {
		for _, n := range counts() {
			all = append(all, contender{name(n), roles.Target{Way: way, Tool: tool(pool, n), Hooks: n}})
		}
	}
	each(inBroker, roles.Fabric, schema.DefaultPool)
	each(inPool, roles.Fabric, remote)
	all = append(all, contender{twoPools, roles.Target{Way: roles.Fabric, Tool: tool(further, 2), Hooks: 2}})
	each(byWebhook, roles.Hook, "")
	each(byStages, roles.TwoStages, "")
	return append(all, contender{command, roles.Target{Way: roles.Command}})
}

// chosen lists the contenders with text in their names, and what all are divided by.
func chosen(text string) []contender {
	all := contenders()
	return append(all[:1:1], slices.DeleteFunc(all[1:], func(c contender) bool { return !strings.Contains(c.name, text) })...)
}

// tool names the tool whose events are for so many hooks of a pool.
func tool(pool string, hooks int) string { return fmt.Sprintf("%s-%d", pool, hooks) }

// A line is one line of the report: a contender against another, or, where
// less is named, what it takes more than that one.
type line struct {
	name, of, less, by string
	// limits are the budgets of the [cells]: a p50 must not be above, a
	// throughput not below. 0: none.
	limits [3]float64
}

// lines lists the report's lines with all budgets.
func lines() []line {
	all := []line{
		{name: noMatch, of: noMatch, by: raw, limits: [3]float64{0.6, 0.9, 1.1}},
		{name: bareInside, of: bareInside, by: raw},
	}
	each := func(name func(hooks int) string, few, eight [3]float64) {
		for _, n := range counts() {
			limits := few
			if n == 8 {
				limits = eight
			}
			all = append(all, line{name: name(n), of: name(n), by: raw, limits: limits})
		}
	}
	each(inBroker, [3]float64{0.8, 1.1, 0.9}, [3]float64{0.8, 1.1, 0.9})
	all = append(all, line{name: bareRelay, of: bareRelay, by: raw})
	each(inPool, [3]float64{1.4, 1.7, 0.55}, [3]float64{1.6, 1.9, 0.5})
	all = append(all,
		line{name: twoPools, of: twoPools, by: raw},
		line{name: "each further pool in sequence, added", of: twoPools, less: inPool(1), by: raw, limits: [3]float64{1.0}})
	each(byWebhook, [3]float64{}, [3]float64{})
	each(byStages, [3]float64{}, [3]float64{})
	all = append(all, line{name: command, of: command, by: raw})
	for _, n := range counts() {
		all = append(all, beats(inBroker(n), byWebhook(n)))
	}
	for _, n := range counts() {
		all = append(all, beats(inPool(n), byStages(n)))
	}
	return all
}

// beats is the line that holds when better is better than worse in every cell.
func beats(better, worse string) line {
	return line{name: better + " : " + worse, of: better, by: worse, limits: [3]float64{1, 1, 1}}
}
