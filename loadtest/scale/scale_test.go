package scale

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/schema"
)

// took is a sample of calls that take so long, and so much CPU time of broker and worker.
func took(p50 time.Duration, broker, worker float64) sample {
	return sample{Figures: measure.Figures{P50: schema.Duration(p50), P99: schema.Duration(2 * p50)}, broker: broker, worker: worker}
}

func TestEveryStepIsDividedByTheFirstOfItsRepetition(t *testing.T) {
	s := &series{steps: []step{{name: "1 hook", many: 1}, {name: "2 hooks", many: 2}}, samples: [][]sample{
		{took(time.Millisecond, 1e-6, 1e-6), took(10*time.Millisecond, 10e-6, 0)},
		{took(2*time.Millisecond, 4e-6, 0), took(20*time.Millisecond, 20e-6, 20e-6)},
	}}
	near := func(got, want []float64) bool {
		return len(got) == 2 && math.Abs(got[0]-want[0]) < 1e-9 && math.Abs(got[1]-want[1]) < 1e-9
	}
	if got := s.ratios(1, p50); !near(got, []float64{2, 2}) {
		t.Errorf("ten times slower in a machine's bad moment is no growth: %v", got)
	}
	if got := s.ratios(1, sample.cpu); !near(got, []float64{2, 4}) {
		t.Errorf("the CPU time of broker and worker grew by %v", got)
	}
	s.samples[0][1].broker = 0
	if got := s.ratios(1, sample.cpu); len(got) != 1 || got[0] != 2 {
		t.Errorf("by a first that was too little to be seen the CPU time grew by %v", got)
	}
	if got := s.ratios(0, p50); !near(got, []float64{1, 1}) {
		t.Errorf("the first is %v of itself", got)
	}
}

func TestAGrowthIsToldInTablesFiguresAndPlots(t *testing.T) {
	g := &growth{part: "items", title: "Items", of: "items", worker: true}
	for _, name := range []string{"", "others"} {
		s := &series{name: name}
		for _, n := range []int{0, 10, 100} {
			s.steps = append(s.steps, step{counted(n, "item", "items"), n, func(context.Context) (sample, error) {
				return took(time.Millisecond, 1e-6, 1e-6), nil
			}})
		}
		g.all = append(g.all, s)
	}
	o := Options{Repetitions: 3, Progress: new(bytes.Buffer)}
	if err := o.repeated(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	var r Report
	g.tell(&r)
	if len(r.Tables) != 1 || len(r.Tables[0].Rows) != 6 || r.Tables[0].Rows[4][0] != "others, 10 items" {
		t.Errorf("the table is %+v", r.Tables)
	}
	for _, row := range r.Tables[0].Rows {
		if len(row) != len(r.Tables[0].Columns) || row[6] != "1.00 [1.00 1.00]" {
			t.Errorf("a row is %q under %q", row, r.Tables[0].Columns)
		}
	}
	if names := figures(r.Figures); len(names) != 2*(3+2*2) || names["items: others, 10 items, p50 : the first"] != 1 {
		t.Errorf("the figures are %v", names)
	}
	if len(r.Plots) != 3 || !r.Plots[0].X.Log || !cmp.Equal(r.Plots[0].Lines[0].X, []float64{10, 100}) {
		t.Errorf("no items have no place on a logarithmic axis: %+v", r.Plots)
	}
	for _, p := range r.Plots {
		for _, l := range p.Lines {
			if l.Name == "" || len(l.X) != len(l.Y) || len(l.Low) != len(l.High) || len(l.Low) != len(l.Y) {
				t.Errorf("%s: a line that cannot be drawn: %+v", p.Title, l)
			}
		}
	}
}

// figures are their values by their names.
func figures(all []result.Figure) map[string]float64 {
	byName := map[string]float64{}
	for _, f := range all {
		byName[f.Name] = f.Value
	}
	return byName
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
			rates := make([][]float64, len(c.rates))
			for i, rate := range c.rates {
				rates[i] = []float64{rate, rate, rate}
			}
			l := labour{name: "hooks", waiter: waiter{wait, c.burns}}
			d := result.Document{Figures: l.figures([]int{1, 2, 4}, rates)}
			if d.OK() != c.want {
				t.Errorf("ok is %v: %+v", d.OK(), d.Figures)
			}
			if rows := l.rows([]int{1, 2, 4}, rates, make([][]measure.Figures, 3)); len(rows) != 3 || !strings.HasPrefix(rows[0][0], "hooks, 1 worker") {
				t.Errorf("the rows are %q", rows)
			}
		})
	}
}

func TestNumbersAreForPeople(t *testing.T) {
	for want, got := range map[string]string{
		"12.3 µs": micros(12.34e-6), "1234 µs": micros(1234e-6), "12.3 ms": micros(12.34e-3), "1.50 s": micros(1.5),
		"100 B": size(100), "-100 B": size(-100), "15.0 KiB": size(15 << 10), "15.0 MiB": size(15 << 20),
		"1 agent": counted(1, "agent", "agents"), "0 agents": counted(0, "agent", "agents"), "1,000,017 agents": counted(1_000_017, "agent", "agents"),
		"1.00 [1.00 1.00]": interval([]float64{1}),
	} {
		if got != want {
			t.Errorf("%q where %q is due", got, want)
		}
	}
}

func TestOnlyPartsThatThereAreCanBeAskedFor(t *testing.T) {
	for _, name := range Parts() {
		if err := (&Options{Only: []string{name}}).Check(); err != nil {
			t.Error(err)
		}
	}
	if _, err := Run(t.Context(), Options{Only: []string{"weather"}}); err == nil || !strings.Contains(err.Error(), "matchers") {
		t.Errorf("the error does not say which parts there are: %v", err)
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
