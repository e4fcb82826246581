package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/schema"
)

// counted returns a load of ten seconds at a hundred calls per second, of which the given
// number was counted. Each has an answer to the event after the tool.
func counted(t *testing.T, calls int) *Measured {
	t.Helper()
	m := &Measured{Scenario: brief(), Series: load.NewSeries(), Bare: load.NewSeries(), Began: time.Unix(1000, 0)}
	m.Scenario.Rate, m.Scenario.For = 100, schema.Duration(10*time.Second)
	r := load.NewRecorder(m.Began)
	for i := range calls {
		due := m.Began.Add(10 * time.Second * time.Duration(i) / time.Duration(calls))
		took := time.Millisecond
		if i%40 == 0 {
			took = 2 * time.Second
		}
		for _, kind := range []string{string(inside), afterwards} {
			r.Count(load.Call{Kind: kind, Due: due, Started: due, Ended: due.Add(took)})
		}
	}
	cut := r.Cut()
	m.Series.Take(&cut)
	return m
}

func TestALoadThatWasTooSmallIsWrong(t *testing.T) {
	killed := []faults.Done{{Fault: faults.Fault{Kind: faults.Kill, Member: "driver-2"}}}
	other := []faults.Done{{Fault: faults.Fault{Kind: faults.Kill, Member: "worker-1"}}, {Fault: faults.Fault{Kind: faults.Stop, Member: "driver-1"}}}
	for name, c := range map[string]struct {
		calls int
		done  []faults.Done
		want  bool
	}{
		"all of it":                    {calls: 1000, want: true},
		"what chance leaves out":       {calls: 850, want: true},
		"less than chance leaves out":  {calls: 780},
		"the same after others died":   {calls: 780, done: other},
		"the same after a driver died": {calls: 780, done: killed, want: true},
	} {
		m := counted(t, c.calls)
		m.Done = c.done
		if got := m.offered(); got.OK() != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		if told := strings.Contains(strings.Join(m.notes(), " "), "Drivers were killed"); told != (m.deadDrivers() > 0) {
			t.Errorf("%s: that drivers were killed is told: %v", name, told)
		}
	}
}

// TestAStallIsInTheTableOfTheWholeRun checks a stall that the median of stretches does not
// show.
func TestAStallIsInTheTableOfTheWholeRun(t *testing.T) {
	m := counted(t, 1000)
	table := m.kinds()
	var d report.Document
	m.figures(&d)
	i := slices.IndexFunc(d.Figures, func(f report.Figure) bool { return f.Name == "p99 of the whole run" })
	if i < 0 || d.Figures[i].Value < 1.9 {
		t.Errorf("the figures are %+v", d.Figures)
	}
	if all := table.Rows[0]; all[0] != "all" || all[1] != "2000" || !strings.HasPrefix(all[3], "2") || !strings.HasPrefix(all[5], "2") {
		t.Errorf("the first row is %q", all)
	}
}
