package scale

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// took returns a sample of calls with a p50 and CPU times of broker and worker.
func took(p50, broker, worker time.Duration) map[int]bench.Sample {
	return map[int]bench.Sample{1: {
		Figures: load.Figures{P50: schema.Duration(p50), P99: schema.Duration(2 * p50), PerSecond: 1 / p50.Seconds()},
		Costs:   map[string]bench.Cost{roles.Broker: {CPU: schema.Duration(broker)}, roles.HookWorker: {CPU: schema.Duration(worker)}},
	}}
}

func TestEveryStepIsDividedByTheFirstOfItsRepetition(t *testing.T) {
	const ms, us = time.Millisecond, time.Microsecond
	s := &series{steps: []step{{name: "1 hook", many: 1}, {name: "2 hooks", many: 2}}}
	g := &growth{all: []*series{s}, samples: bench.Samples{
		"1 hook":  {took(ms, us, us), took(10*ms, 10*us, 0)},
		"2 hooks": {took(2*ms, 4*us, 0), took(20*ms, 20*us, 20*us)},
	}}
	near := func(got, want []float64) bool {
		return len(got) == 2 && math.Abs(got[0]-want[0]) < 1e-9 && math.Abs(got[1]-want[1]) < 1e-9
	}
	if got := g.ratios(s, 1, bench.P50); !near(got, []float64{2, 2}) {
		t.Errorf("a repetition that is ten times slower is no growth: %v", got)
	}
	if got := g.ratios(s, 1, cpu); !near(got, []float64{2, 4}) {
		t.Errorf("the CPU time of broker and worker grew by %v", got)
	}
	g.samples["1 hook"][1] = took(ms, 0, 0)
	if got := g.ratios(s, 1, cpu); len(got) != 1 || got[0] != 2 {
		t.Errorf("with a first value of 0 the CPU time grew by %v", got)
	}
}

func TestAGrowthHasATableFiguresAndPlots(t *testing.T) {
	g := &growth{part: "items", title: "Items", of: "items", worker: true, samples: bench.Samples{}}
	for _, name := range []string{"", "others"} {
		s := &series{name: name}
		for i, n := range []int{0, 10, 100} {
			s.steps = append(s.steps, step{name: counted(n, "item", "items"), many: n})
			one := took(time.Millisecond, time.Microsecond, time.Microsecond)
			g.samples[s.label(i)] = []map[int]bench.Sample{one, one, one}
		}
		g.all = append(g.all, s)
	}
	var r Report
	g.add(&r)
	if len(r.Tables) != 1 || len(r.Tables[0].Rows) != 6 || r.Tables[0].Rows[4][0] != "others, 10 items" {
		t.Errorf("the table is %+v", r.Tables)
	}
	for _, row := range r.Tables[0].Rows {
		if len(row) != len(r.Tables[0].Columns) || row[len(row)-1] != "1.00 [1.00 1.00]" {
			t.Errorf("a row is %q under %q", row, r.Tables[0].Columns)
		}
	}
	names := map[string]float64{}
	for _, f := range r.Figures {
		names[f.Name] = f.Value
	}
	if len(names) != 2*(3+2*2) || names["items: others, 10 items, p50 : the first"] != 1 {
		t.Errorf("the figures are %v", names)
	}
	if len(r.Plots) != 2 || !r.Plots[0].X.Log || !cmp.Equal(r.Plots[0].Lines[0].X, []float64{10, 100}) {
		t.Errorf("a size of 0 has no place on a logarithmic axis: %+v", r.Plots)
	}
	if r.Scenario = "scale"; r.Sound() != nil {
		t.Error(r.Sound())
	}
}

func TestAPoolOfHooksThatWaitHasToGrow(t *testing.T) {
	for name, c := range map[string]struct {
		rates []float64
		burns bool
		want  bool
	}{
		"linear growth is fine":                 {[]float64{400, 800, 1600}, false, true},
		"a little less is fine":                 {[]float64{400, 700, 1300}, false, true},
		"no growth is not":                      {[]float64{400, 400, 400}, false, false},
		"growth that stops at two is not":       {[]float64{400, 800, 900}, false, false},
		"a pool that shrinks is not either":     {[]float64{400, 300, 200}, false, false},
		"hooks that compute need not grow them": {[]float64{400, 500, 500}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := &growth{samples: bench.Samples{}}
			s := &series{name: "hooks"}
			for i, rate := range c.rates {
				s.steps = append(s.steps, step{name: counted(1<<i, "worker", "workers"), many: 1 << i})
				one := map[int]bench.Sample{1: {Figures: load.Figures{PerSecond: rate}}}
				g.samples[s.label(i)] = []map[int]bench.Sample{one, one, one}
			}
			if g.all = []*series{s}; c.burns {
				g.all = []*series{{steps: s.steps[:1]}, s} // the second series computes
			}
			var r Report
			g.judgeWorkers(&r)
			if d := (report.Document{Figures: r.Figures}); d.OK() != c.want || len(r.Figures) != 2 {
				t.Errorf("ok is %v: %+v", d.OK(), r.Figures)
			}
		})
	}
}

func TestConfigurationsHaveAsManyHooks(t *testing.T) {
	for _, k := range kinds() {
		for _, n := range []int{1, 10} {
			text := k.hooks(n)
			if got := strings.Count(text, "handler: allow"); got != n {
				t.Errorf("%s: %d hooks where %d are due:\n%s", k.name, got, n, text)
			}
		}
	}
	if got := strings.Count(global(10, "miss-%d|other-%d"), hit+"*"); got != 1 {
		t.Errorf("%d hooks match", got)
	}
}
