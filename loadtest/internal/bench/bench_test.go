package bench

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/schema"
)

// sampled is ten repetitions of rows. A row takes as long as takes says, others 100 µs.
func sampled(rows []row, takes map[string]time.Duration) Samples {
	samples := Samples{}
	for _, r := range rows {
		took := 100 * time.Microsecond
		if d, ok := takes[r.name]; ok {
			took = d
		}
		s := Sample{
			Figures: load.Figures{Calls: 1, P50: schema.Duration(took), P99: schema.Duration(2 * took), PerSecond: 1 / took.Seconds()},
			Costs: map[string]Cost{
				"requester": {CPU: schema.Duration(took / 2), Allocations: 40.2, Waits: 0.25},
				"broker":    {CPU: schema.Duration(took / 4), Allocations: 10, Waits: 0.5},
				"idle":      {CPU: schema.Duration(took / 400), Allocations: 0.1},
			},
		}
		samples[r.name] = slices.Repeat([]map[int]Sample{{1: s, Many: s}}, 10)
	}
	return samples
}

// judged is the report of samples of the command bench.
func judged(o Options, s Samples) *Report {
	var all []Contender
	for _, r := range chosen(o.Only) {
		all = append(all, Contender{Name: r.name})
	}
	r := new(Report)
	r.Compare(&o, s, lines())
	r.Show(s, callers(), all)
	return r
}

func failing(r *Report) []string {
	var names []string
	for _, row := range r.Rows {
		if !row.OK {
			names = append(names, row.Name+", "+row.Metric)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestTheMedianOfARowCounts(t *testing.T) {
	for name, c := range map[string]struct {
		metric string
		ratios []float64
		limit  float64
		slack  float64
		want   bool
	}{
		"a p50 below its budget is fine":                       {p50, []float64{0.4, 0.5, 0.6}, 0.8, 0, true},
		"a p50 above it is over, even if its interval is not":  {p50, []float64{0.7, 0.81, 1}, 0.8, 0, false},
		"a throughput above its budget is fine":                {throughput, []float64{1.1, 1.2, 1.3}, 0.9, 0, true},
		"a throughput below it is over":                        {throughput, []float64{0.7, 0.89, 1}, 0.9, 0, false},
		"a p50 within the slack is fine":                       {p50, []float64{1, 1.1, 1.3}, 0.8, 1.5, true},
		"a p50 beyond the slack is over":                       {p50, []float64{1, 1.21, 1.4}, 0.8, 1.5, false},
		"a throughput within the slack is fine":                {throughput, []float64{0.5, 0.61, 0.7}, 0.9, 1.5, true},
		"a throughput beyond the slack is over":                {throughput, []float64{0.4, 0.59, 0.7}, 0.9, 1.5, false},
		"a row without a budget is fine whatever its ratio is": {p50, []float64{98, 99, 100}, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			var r Report
			row := Row{Metric: c.metric}
			if c.limit != 0 {
				row.Budget = &c.limit
			}
			r.Add(&Options{Slack: c.slack}, row, c.ratios)
			if r.Rows[0].OK != c.want || r.Document.OK() != c.want {
				t.Errorf("ok is %v: %+v", r.Rows[0].OK, r.Figures[0])
			}
		})
	}
}

func TestAReportNamesWhatIsOverBudget(t *testing.T) {
	fast := map[string]time.Duration{twoPools: 190 * time.Microsecond}
	r := judged(Options{}, sampled(calls(), fast))
	if !r.OK() {
		t.Fatalf("these rows are within their budgets but reported over them: %q", failing(r))
	}
	slow := maps.Clone(fast)
	slow[noHook] = 115 * time.Microsecond
	slow[inBroker(8)] = 160 * time.Microsecond
	slow[twoPools] = 205 * time.Microsecond
	slow[byStages(3)] = 90 * time.Microsecond
	want := []string{
		inBroker(8) + " : floor-in, cpu", inBroker(8) + " : floor-in, p50", inBroker(8) + " : floor-in, throughput",
		inBroker(8) + " : " + byWebhook(8) + ", p50", inBroker(8) + " : " + byWebhook(8) + ", p99", inBroker(8) + " : " + byWebhook(8) + ", throughput",
		"each further pool in sequence, added, p50", "no hook : floor-in, p50",
		inPool(3) + " : " + byStages(3) + ", throughput",
	}
	r = judged(Options{}, sampled(calls(), slow))
	if d := cmp.Diff(want, failing(r)); d != "" || r.OK() {
		t.Errorf("over budget (-want +got):\n%s", d)
	}
}

// TestEveryLineIsMeasured compares the names in lines with the measured rows.
func TestEveryLineIsMeasured(t *testing.T) {
	rows, of := queries()
	for _, c := range []struct {
		rows  []row
		lines []Line
	}{{calls(), lines()}, {rows, of}} {
		measured := map[string]bool{"": true}
		for _, r := range c.rows {
			if measured[r.name] {
				t.Errorf("two rows have the name %q", r.name)
			}
			measured[r.name] = true
		}
		for _, l := range c.lines {
			if l.Of == "" || l.By == "" || !measured[l.Of] || !measured[l.Less] || !measured[l.By] {
				t.Errorf("the line %+v has a name that is not measured", l)
			}
		}
	}
}

func TestTheReportAsJSON(t *testing.T) {
	body, err := schema.Marshal(judged(Options{}, sampled(calls(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Rows     []map[string]jsontext.Value `json:"rows"`
		Absolute []Absolute                  `json:"absolute"`
	}
	if err := schema.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"budget", "callers", "high", "low", "metric", "name", "ok", "ratio"}
	budgets := 0
	for _, row := range got.Rows {
		if d := cmp.Diff(want, slices.Sorted(maps.Keys(row))); d != "" {
			t.Fatalf("the members of a row (-want +got):\n%s", d)
		}
		if row["budget"].Kind() == '0' {
			budgets++
		}
	}
	// Three for no hook, and for broker and pool with each number of hooks, one for a further
	// pool, three for each comparison with a webhook, and one for each with two stages.
	if budgets != 3*7+1+3*3+3 {
		t.Errorf("%d of %d rows have a budget", budgets, len(got.Rows))
	}
	us := func(n int) schema.Duration { return schema.Duration(time.Duration(n) * time.Microsecond) }
	first := Absolute{Name: raw, Callers: 1, P50: us(100), P99: us(200), PerSecond: 10_000, Costs: map[string]Cost{
		"requester": {CPU: us(50), Allocations: 40, Waits: 0.3}, "broker": {CPU: us(25), Allocations: 10, Waits: 0.5},
	}}
	if d := cmp.Diff(first, got.Absolute[0]); d != "" {
		t.Errorf("the base, without the idle process (-want +got):\n%s", d)
	}
}

func TestEveryRowIsAFigure(t *testing.T) {
	r := judged(Options{Slack: 1.3}, sampled(calls(), map[string]time.Duration{noHook: 50 * time.Microsecond}))
	if err := r.Sound(); err != nil {
		t.Fatal(err)
	}
	for i, f := range r.Figures {
		row := r.Rows[i]
		if rounded(f.Value) != row.Ratio || (f.Budget == nil) != (row.Budget == nil) || f.OK() != row.OK || len(f.Samples) != 10 || (f.Better == report.Higher) != (row.Metric == throughput) {
			t.Errorf("the figure of %+v is %+v", row, f)
		}
	}
	if f := r.Figures[0]; len(r.Figures) != len(r.Rows) || f.Name != "no hook, p50, 1 caller" || f.Value != 0.5 {
		t.Errorf("the first of %d figures is %+v", len(r.Figures), f)
	}
}

func TestOnlySomeRows(t *testing.T) {
	o := Options{Only: []string{"broker,"}}
	r := judged(o, sampled(chosen(o.Only), nil))
	if len(r.Rows) != 2*3+(3+3)*len(counts()) || len(r.Absolute) != 2*(bases+len(counts())) {
		t.Errorf("%d rows and %d absolute ones of three rows and the bases", len(r.Rows), len(r.Absolute))
	}
}

// TestABaseIsMeasuredSeveralTimes counts the calls of three repetitions, of which the first does not count.
func TestABaseIsMeasuredSeveralTimes(t *testing.T) {
	measured := map[string]int{}
	contender := func(name string, times int) Contender {
		return Contender{Name: name, Times: times, Measure: func(_ context.Context, callers int) (Sample, error) {
			measured[name]++
			return Sample{Figures: load.Figures{P50: schema.Duration(callers * measured[name])}}, nil
		}}
	}
	o := Options{Progress: io.Discard}
	s, err := o.Repeat(t.Context(), 2, callers(), []Contender{contender("base", 3), contender("other", 0)})
	if err != nil {
		t.Fatal(err)
	}
	// Each is asked once before, to wait for it.
	if want := map[string]int{"base": 1 + 3*3*2, "other": 1 + 3*2}; !maps.Equal(measured, want) || len(s["base"]) != 2 || len(s["other"]) != 2 {
		t.Errorf("measured %v, want %v: %v", measured, want, s)
	}
	if got := s.Of("other", 1, P50); got[0] != 4e-9 || got[1] != 6e-9 {
		t.Errorf("the second and the third repetition are %v", got)
	}
}

func TestAnInterruptedRunKeepsCompleteRepetitions(t *testing.T) {
	for after, want := range map[int]int{1: 0, 2: 1, 3: 2} {
		ctx, stop := context.WithCancel(t.Context())
		n := 0
		o := Options{Progress: io.Discard}
		s, err := o.Repeat(ctx, 5, []int{1}, []Contender{{Name: "one", Measure: func(ctx context.Context, callers int) (Sample, error) {
			if n += callers; n > after {
				stop()
			}
			return Sample{}, ctx.Err()
		}}})
		if len(s["one"]) != want && err == nil || (want == 0) != (err != nil) {
			t.Errorf("after %d measurements there are %d repetitions, %v", after, len(s["one"]), err)
		}
		stop()
	}
}

func TestAPartThatFailsEndsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		o := Options{Progress: io.Discard, Only: []string{"good", "bad", "slow"}}
		ran := ""
		part := func(name string, err error) Part {
			return Part{name, func(context.Context) error {
				if ran += name + " "; name == "slow" {
					stop()
				}
				return err
			}}
		}
		var d report.Document
		err := o.Run(ctx, &d, []Part{part("bad", errors.New("it rained")), part("other", nil), part("good", nil), part("slow", nil), part("good", nil)})
		if err != nil || ran != "bad good slow " {
			t.Errorf("it ran %s, %v", ran, err)
		}
		if c := d.Check(measured); c.Seen != 2 || c.Wrong != 1 || c.Examples[0] != "bad: it rained" {
			t.Errorf("the check is %+v", c)
		}
		if err := o.Run(ctx, new(report.Document), []Part{part("slow", nil)}); !errors.Is(err, context.Canceled) {
			t.Errorf("a run that was interrupted in its first part ends with %v", err)
		}
	})
}

func TestOptionsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		check func(*Options) error
		o     Options
		want  string
	}{
		{CheckCalls, Options{Record: "all"}, "facts, content or off"},
		{CheckCalls, Options{Only: []string{"weather"}}, `"weather"`},
		{CheckCalls, Options{Only: []string{"raw"}}, ""},
		{CheckRecord, Options{Rate: 0}, "--rate"}, {CheckRecord, Options{Rate: 1e6}, "--rate"}, {CheckRecord, Options{Rate: Rate}, ""},
	} {
		if err := c.check(&c.o); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}
