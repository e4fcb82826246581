package scale

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/schema"
)

// grown is three repetitions in which each number of workers does so many per second.
func grown(rates map[int]float64) []sample {
	one := sample{}
	for n, rate := range rates {
		one[n] = measure.Figures{Calls: 1, P50: schema.Duration(wait), PerSecond: rate}
	}
	return []sample{one, one, one}
}

func TestGrowthIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		rates map[int]float64
		want  bool
	}{
		"linear growth is fine":             {map[int]float64{1: 400, 2: 800, 4: 1600}, true},
		"a little less is fine":             {map[int]float64{1: 400, 2: 700, 4: 1300}, true},
		"no growth is not":                  {map[int]float64{1: 400, 2: 400, 4: 400}, false},
		"growth that stops at two is not":   {map[int]float64{1: 400, 2: 800, 4: 900}, false},
		"a pool that shrinks is not either": {map[int]float64{1: 400, 2: 300, 4: 200}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if r := judged(Quick(), grown(c.rates)); r.OK() != c.want {
				t.Errorf("ok is %v: %+v", r.OK(), r.Rows)
			}
		})
	}
}

func TestThePrintedReport(t *testing.T) {
	var b bytes.Buffer
	if err := judged(Quick(), grown(map[int]float64{1: 400, 2: 800, 4: 400})).Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2.00 [2.00 2.00]", "1.00 [1.00 1.00]", "TOO LITTLE", "100 %", "hooks that wait 20ms, 8 at once per worker, 64 callers"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &b)
		}
	}
}
