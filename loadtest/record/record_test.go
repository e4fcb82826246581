package record

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

// stood are brokers of all modes that took so long, by their names; others took 1 ms.
func stood(p50 map[string]float64) (all []*stand) {
	for _, m := range modes() {
		s := &stand{mode: m, asked: 100}
		took := p50[m.name]
		if took == 0 {
			took = 0.001
		}
		for range 10 {
			s.samples = append(s.samples, sample{p50: took, p99: 2 * took, cpu: took / 10, rate: 2000})
		}
		all = append(all, s)
	}
	return all
}

// good are what must be so and was.
func good() *result.Document {
	d := new(result.Document)
	for _, name := range []string{complete, bounded, newest, silent, nothing} {
		d.Check(name).Seen = 1
	}
	return d
}

func TestOnlyWhatTheFactsCostIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		p50  map[string]float64
		want bool
	}{
		"nothing":                   {nil, true},
		"little for the facts":      {map[string]float64{facts: 0.00104}, true},
		"much for the facts":        {map[string]float64{facts: 0.00110}, false},
		"much for the content, too": {map[string]float64{content: 0.002}, true},
	} {
		d := good()
		judge(d, stood(c.p50), DefaultRate)
		if d.OK() != c.want {
			t.Errorf("%s: %t, %+v", name, d.OK(), d.Figures)
		}
		if len(d.Figures) != 6 || len(d.Tables[0].Rows) != len(modes()) {
			t.Errorf("%s: %d figures, %d rows", name, len(d.Figures), len(d.Tables[0].Rows))
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
		"one less":  {3, seen, 0, "3 calls, and 2 in the record"},
		"one twice": {2, map[string]int{"a": 2, "b": 1}, 0, "a is there 2 times"},
		"dropped":   {2, seen, 5, "5 records"},
	} {
		d := new(result.Document)
		s := &stand{mode: modes()[1], asked: c.asked}
		s.judge(d, c.seen, c.dropped)
		wrong := ""
		for _, k := range d.Checks {
			wrong += strings.Join(k.Examples, ", ")
		}
		if !strings.Contains(wrong, c.want) || (wrong == "") != (c.want == "") {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}

func TestARateIsBounded(t *testing.T) {
	for rate, want := range map[float64]bool{0: false, 1: true, 2000: true, 1e6: false, -1: false} {
		o := Options{Rate: rate}
		if (o.Check() == nil) != want {
			t.Errorf("%v: %v", rate, o.Check())
		}
	}
}
