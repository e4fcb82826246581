package bench

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// recorded are ten repetitions of all modes. A mode has the p50 in takes, others 1 ms.
func recorded(takes map[string]time.Duration) Samples {
	all := Samples{}
	for _, m := range modes() {
		took := time.Millisecond
		if d, ok := takes[m.name]; ok {
			took = d
		}
		s := Sample{
			Figures: load.Figures{P50: schema.Duration(took), P99: schema.Duration(2 * took), PerSecond: 1 / took.Seconds()},
			Costs:   map[string]Cost{roles.Broker: {CPU: schema.Duration(took / 10)}},
		}
		all[m.name] = slices.Repeat([]map[int]Sample{{steady: s, Many: s}}, 10)
	}
	return all
}

// stored is a report whose checks hold.
func stored() *Report {
	r := new(Report)
	for _, name := range []string{complete, bounded, newest, silent, nothing} {
		r.Check(name).Seen = 1
	}
	return r
}

func TestOnlyTheCostOfTheFactsHasABudget(t *testing.T) {
	for name, c := range map[string]struct {
		takes map[string]time.Duration
		want  bool
	}{
		"no cost":                   {nil, true},
		"little for the facts":      {map[string]time.Duration{facts: 1040 * time.Microsecond}, true},
		"much for the facts":        {map[string]time.Duration{facts: 1100 * time.Microsecond}, false},
		"much for the content, too": {map[string]time.Duration{content: 2 * time.Millisecond}, true},
	} {
		r := stored()
		r.judgeRecord(&Options{Rate: Rate}, recorded(c.takes))
		if r.OK() != c.want {
			t.Errorf("%s: %t, %+v", name, r.OK(), r.Figures)
		}
		if len(r.Figures) != 12 || len(r.Tables) != 2 || len(r.Tables[0].Rows) != len(modes()) {
			t.Errorf("%s: %d figures, %d tables", name, len(r.Figures), len(r.Tables))
		}
	}
}

func TestEachLoadHasFiguresOfItsOwn(t *testing.T) {
	r := stored()
	samples := recorded(nil)
	for i, s := range samples[facts] {
		busy := s[Many]
		busy.PerSecond /= 2
		samples[facts][i] = map[int]Sample{steady: s[steady], Many: busy}
	}
	r.judgeRecord(&Options{Rate: Rate}, samples)
	got := map[string]float64{}
	for _, f := range r.Figures {
		got[f.Name] = f.Value
	}
	for name, want := range map[string]float64{
		"throughput with the facts : no record, 16 callers flat out":                        0.5,
		"throughput with the content, too : no record, 16 callers flat out":                 1,
		"p50 with the facts : no record, 2000 times a second":                               1,
		"CPU of the broker per call with the content, too : no record, 2000 times a second": 1,
		"CPU of the broker per call, added by the facts, 16 callers flat out":               0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v; want %v", name, v, want)
		}
	}
}

func TestCallsThatAreMissingTwiceOrDroppedAreWrong(t *testing.T) {
	seen := map[string]int{"a": 1, "b": 1}
	for name, c := range map[string]struct {
		asked   int64
		seen    map[string]int
		dropped uint64
		want    string
	}{
		"all":       {2, seen, 0, ""},
		"one less":  {3, seen, 0, "3 calls, but 2 in the record"},
		"one twice": {2, map[string]int{"a": 2, "b": 1}, 0, "a is recorded 2 times"},
		"dropped":   {2, seen, 5, "5 records"},
	} {
		d := new(report.Document)
		recorder{modes()[1], &Fabric{asked: c.asked}}.judge(d, c.seen, c.dropped)
		wrong := ""
		for _, k := range d.Checks {
			wrong += strings.Join(k.Examples, ", ")
		}
		if !strings.Contains(wrong, c.want) || (wrong == "") != (c.want == "") {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}
