package report

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestMedian(t *testing.T) {
	for name, c := range map[string]struct {
		samples []float64
		want    float64
	}{
		"nothing has the median zero":                 {nil, 0},
		"one sample is its own median":                {[]float64{7}, 7},
		"an odd number has a middle one":              {[]float64{9, 1, 5}, 5},
		"an even number has the middle of the middle": {[]float64{4, 1, 3, 2}, 2.5},
		"an outlier moves nothing":                    {[]float64{1, 2, 1e9}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Median(c.samples); got != c.want {
				t.Errorf("median of %v is %v, want %v", c.samples, got, c.want)
			}
		})
	}
}

func TestMedianLeavesTheOrder(t *testing.T) {
	samples := []float64{3, 1, 2}
	Estimated(samples)
	if samples[0] != 3 || samples[1] != 1 || samples[2] != 2 {
		t.Errorf("the samples were reordered: %v", samples)
	}
}

func TestAnIntervalHoldsItsMedian(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Float64Range(0.1, 10), 1, 20).Draw(t, "samples")
		e := Estimated(samples)
		if e.Low > e.Median || e.Median > e.High {
			t.Fatalf("the interval [%v, %v] does not hold %v", e.Low, e.High, e.Median)
		}
		if again := Estimated(samples); again != e {
			t.Fatalf("the same samples gave %v and then %v", e, again)
		}
	})
}

func TestEqualSamplesLeaveNoDoubt(t *testing.T) {
	if e := Estimated([]float64{2, 2, 2, 2}); e != (Estimate{2, 2, 2}) {
		t.Errorf("four equal samples gave %+v", e)
	}
}

// TestTheIntervalCovers draws ten samples around a known median, many times. A percentile
// bootstrap of ten comes near to 95 %, so at least 85 % of the intervals must contain the
// median, and not all of them.
func TestTheIntervalCovers(t *testing.T) {
	const runs, truth = 300, 1.5
	random := rand.New(rand.NewPCG(3, 4))
	held := 0
	for range runs {
		samples := make([]float64, 10)
		for i := range samples {
			samples[i] = truth + random.NormFloat64()/10
		}
		if e := Estimated(samples); e.Low <= truth && truth <= e.High {
			held++
		}
	}
	if held < runs*85/100 || held == runs {
		t.Errorf("%d of %d intervals hold the true median", held, runs)
	}
}
