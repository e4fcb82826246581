package bench

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/stats"
	"github.com/hookfabric/hookfabric/schema"
)

// steady is ten repetitions in which every contender takes as long as takes
// says, and a bare request-reply 100 µs.
func steady(takes map[string]time.Duration) map[string][]sample {
	samples := map[string][]sample{}
	for _, c := range contenders() {
		p50 := 100 * time.Microsecond
		if d, ok := takes[c.name]; ok {
			p50 = d
		}
		f := figures{
			measure.Figures{Calls: 1, P50: schema.Duration(p50), P99: schema.Duration(2 * p50), PerSecond: 1 / p50.Seconds()},
			map[string]Cost{
				"requester": {CPU: schema.Duration(p50 / 2), Allocations: 40.2, Waits: 0.25},
				"broker":    {CPU: schema.Duration(p50 / 4), Allocations: 10, Waits: 0.5},
				"idle":      {CPU: schema.Duration(p50 / 400), Allocations: 0.1},
			},
		}
		for range 10 {
			samples[c.name] = append(samples[c.name], sample{1: f, many: f})
		}
	}
	return samples
}

func failing(r *Report) []string {
	var names []string
	for _, row := range r.Rows {
		if !row.OK {
			names = append(names, row.Name+", "+row.Metric)
		}
	}
	return slices.Compact(names)
}

func TestJudge(t *testing.T) {
	one := cell{p50, 1}
	rate := cell{throughput, many}
	for name, c := range map[string]struct {
		cell  cell
		e     stats.Estimate
		limit float64
		slack float64
		want  bool
	}{
		"a p50 below its budget is fine":                              {one, stats.Estimate{Median: 0.5, Low: 0.4, High: 0.6}, 0.8, 0, true},
		"a p50 above it is not sure to be, while the interval is not": {one, stats.Estimate{Median: 0.9, Low: 0.79, High: 1}, 0.8, 0, true},
		"a p50 whose whole interval is above it is over":              {one, stats.Estimate{Median: 0.9, Low: 0.81, High: 1}, 0.8, 0, false},
		"a throughput above its budget is fine":                       {rate, stats.Estimate{Median: 1.2, Low: 1.1, High: 1.3}, 0.9, 0, true},
		"a throughput whose interval reaches it is fine":              {rate, stats.Estimate{Median: 0.8, Low: 0.7, High: 0.91}, 0.9, 0, true},
		"a throughput whose whole interval is below it is over":       {rate, stats.Estimate{Median: 0.8, Low: 0.7, High: 0.89}, 0.9, 0, false},
		"a p50 within the slack is fine":                              {one, stats.Estimate{Median: 1.1, Low: 1, High: 1.2}, 0.8, 1.5, true},
		"a p50 beyond the slack is not":                               {one, stats.Estimate{Median: 1.3, Low: 1.21, High: 1.4}, 0.8, 1.5, false},
		"a throughput within the slack is fine":                       {rate, stats.Estimate{Median: 0.6, Low: 0.5, High: 0.61}, 0.9, 1.5, true},
		"a throughput beyond the slack is not":                        {rate, stats.Estimate{Median: 0.5, Low: 0.4, High: 0.59}, 0.9, 1.5, false},
		"without a budget anything is fine":                           {one, stats.Estimate{Median: 99, Low: 98, High: 100}, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Row{Metric: c.cell.metric, slack: c.slack}).limited(c.limit).judged(c.e); got.OK != c.want {
				t.Errorf("ok is %v", got.OK)
			}
		})
	}
}

func TestAReportNamesWhatIsOverBudget(t *testing.T) {
	fast := map[string]time.Duration{
		noMatch: 50 * time.Microsecond, twoPools: 190 * time.Microsecond,
		inBroker(1): 70 * time.Microsecond, inBroker(3): 70 * time.Microsecond, inBroker(8): 70 * time.Microsecond,
		byStages(1): 150 * time.Microsecond, byStages(3): 150 * time.Microsecond, byStages(8): 150 * time.Microsecond,
	}
	r := judged(Thorough(), steady(fast))
	if !r.OK() {
		t.Fatalf("these are within budget and called over it: %q", failing(r))
	}
	slow := maps.Clone(fast)
	slow[inBroker(8)] = 95 * time.Microsecond
	slow[twoPools] = 205 * time.Microsecond
	slow[byStages(3)] = 90 * time.Microsecond
	want := []string{
		inBroker(8) + ", p50",
		"each further pool in sequence, added, p50",
		inPool(3) + " : " + byStages(3) + ", p50", inPool(3) + " : " + byStages(3) + ", throughput",
	}
	r = judged(Thorough(), steady(slow))
	if d := cmp.Diff(want, failing(r)); d != "" || r.OK() {
		t.Errorf("over budget (-want +got):\n%s", d)
	}
}

// TestEveryLineIsMeasured holds the lines to the contenders: a name that is
// misspelled would be a line of nothing.
func TestEveryLineIsMeasured(t *testing.T) {
	measured := map[string]bool{"": true}
	for _, c := range contenders() {
		if measured[c.name] {
			t.Errorf("two contenders are called %q", c.name)
		}
		measured[c.name] = true
	}
	for _, l := range lines() {
		if l.of == "" || l.by == "" || !measured[l.of] || !measured[l.less] || !measured[l.by] {
			t.Errorf("the line %q compares %q (less %q) with %q; not all of them are measured", l.name, l.of, l.less, l.by)
		}
	}
}

func TestTheReportAsJSON(t *testing.T) {
	body, err := schema.Marshal(judged(Thorough(), steady(nil)))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Rows []map[string]jsontext.Value `json:"rows"`
	}
	if err := schema.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"budget", "callers", "high", "low", "metric", "name", "ok", "ratio"}
	budgets := 0
	for _, row := range got.Rows {
		if d := cmp.Diff(want, slices.Sorted(maps.Keys(row))); d != "" {
			t.Fatalf("a row's members (-want +got):\n%s", d)
		}
		if row["budget"].Kind() == '0' {
			budgets++
		}
	}
	// Three for no match, the broker and the pool with each number of hooks,
	// one for a further pool, and three for each of six comparisons.
	if budgets != 3*7+1+3*6 {
		t.Errorf("%d of %d rows have a budget", budgets, len(got.Rows))
	}
}

func TestThePrintedReport(t *testing.T) {
	var b bytes.Buffer
	if err := judged(Thorough(), steady(map[string]time.Duration{noMatch: 61 * time.Microsecond})).Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0.61 [0.61 0.61] ≤ 0.60 OVER BUDGET", "1.00 [1.00 1.00] ≥ 0.55 ok", "100µs (200µs)", "10 repetitions of 200ms",
		"75.0 (broker 25.0, requester 50.0)", "50 (broker 10, requester 40)", "0.8 (broker 0.5, requester 0.3)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &b)
		}
	}
}

func TestOnlySomeRows(t *testing.T) {
	o := Thorough()
	o.Only = "inside broker"
	samples := steady(nil)
	maps.DeleteFunc(samples, func(name string, _ []sample) bool { return name != raw && !strings.Contains(name, o.Only) })
	r := judged(o, samples)
	if len(r.Rows) != 3*len(counts()) || len(r.Absolute) != 2*(1+len(counts())) {
		t.Errorf("%d rows and %d absolute ones of three contenders and the bare request-reply", len(r.Rows), len(r.Absolute))
	}
}
