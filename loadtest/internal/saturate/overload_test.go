package saturate

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
)

// TestALoadThatIsNotTooMuchIsCalledSo sets the latency of calls and the percentage that
// gets an answer.
func TestALoadThatIsNotTooMuchIsCalledSo(t *testing.T) {
	s := scenario.Default()
	for name, c := range map[string]struct {
		took     time.Duration
		answered int64
		careful  bool
	}{
		"all are answered at once": {took: time.Millisecond, answered: 100, careful: true},
		"they take long":           {took: time.Second, answered: 100},
		"many are not answered":    {took: time.Millisecond, answered: 90},
	} {
		k := load.Kind{Counts: load.Counts{Offered: 100, Answered: c.answered}}
		for range k.Offered {
			k.Latency.Record(c.took)
		}
		var d report.Document
		shown(&d, (&search{scenario: &s, base: 0.001}).keeps(k))
		if got := strings.Contains(strings.Join(d.Notes, ""), "kept up"); got != c.careful {
			t.Errorf("%s: %q", name, d.Notes)
		}
	}
}

func TestARecoveryIsBoundedOnlyWhereThereWasAnOverload(t *testing.T) {
	for keeps, over := range map[bool]bool{true: false, false: true} {
		if got := !recovered(backIn+1, keeps).OK(); got != over {
			t.Errorf("the load was kept up with: %t, and a long recovery is over its bound: %t", keeps, got)
		}
	}
}

// TestStretchesAreWholeAndAllOfIt lets each second answer as many calls as its number, each
// of which takes as many milliseconds.
func TestStretchesAreWholeAndAllOfIt(t *testing.T) {
	m := &fleet.Measured{Series: load.NewSeries(), Bare: load.NewSeries()}
	for second := range 30 {
		one := load.Second{Second: second, Kind: "inside", Counts: load.Counts{Offered: int64(second), Answered: int64(second)}}
		for range second {
			one.Latency.Record(time.Duration(second) * time.Millisecond)
		}
		m.Series.Take(&load.Cut{Seconds: []load.Second{one}})
	}
	for _, c := range []struct {
		from, until   time.Duration
		rates, first  float64 // the sum, and the first one
		stretches     int
		p99, latest99 float64
	}{
		{5 * time.Second, 25 * time.Second, 145, 5.5, 10, 0.006, 0.024},
		{5 * time.Second, 8 * time.Second, 18, 5, 3, 0.005, 0.007},
		{5 * time.Second, 17 * time.Second, 0, 5, 10, 0.005, 0.016},
	} {
		all := m.Stretches(c.from, c.until)
		p99s, rates, sum := p99s(all), []float64(nil), 0.0
		for _, s := range all {
			rates, sum = append(rates, s.Rate()), sum+s.Rate()
		}
		if len(rates) != c.stretches || len(p99s) != c.stretches {
			t.Fatalf("from %v until %v there are %v and %v", c.from, c.until, rates, p99s)
		}
		if c.rates > 0 && math.Abs(sum-c.rates) > 1e-9 || math.Abs(rates[0]-c.first) > 1e-9 {
			t.Errorf("from %v until %v events came at %v", c.from, c.until, rates)
		}
		if math.Abs(p99s[0]-c.p99) > 1e-5 || math.Abs(p99s[len(p99s)-1]-c.latest99) > 1e-4 {
			t.Errorf("from %v until %v p99 is %v", c.from, c.until, p99s)
		}
	}
	if p99s := p99s(m.Stretches(0, 2*time.Second)); len(p99s) != 1 {
		t.Errorf("a second without calls has a p99: %v", p99s)
	}
}
