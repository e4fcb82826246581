package record

import (
	"slices"
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
		one := sample{p50: took, p99: 2 * took, cpu: took / 10, rate: 2000}
		s.steady, s.busy = slices.Repeat([]sample{one}, 10), slices.Repeat([]sample{{p50: took / 5, p99: took, cpu: took / 20, rate: 20 / took}}, 10)
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
		if len(d.Figures) != 12 || len(d.Tables) != 2 || len(d.Tables[0].Rows) != len(modes()) {
			t.Errorf("%s: %d figures, %d tables, %d rows", name, len(d.Figures), len(d.Tables), len(d.Tables[0].Rows))
		}
	}
}

func TestEachLoadHasFiguresOfItsOwn(t *testing.T) {
	d := good()
	stands := stood(nil)
	for i := range stands[1].busy {
		stands[1].busy[i].rate /= 2
	}
	judge(d, stands, DefaultRate)
	got := map[string]float64{}
	for _, f := range d.Figures {
		got[f.Name] = f.Value
	}
	for name, want := range map[string]float64{
		"throughput with the facts : no record, 16 callers flat out":        0.5,
		"throughput with the content, too : no record, 16 callers flat out": 1,
		"p50 with the facts : no record, 2000 times a second":               1,
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
