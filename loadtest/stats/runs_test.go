package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func about(a, b float64) bool { return math.Abs(a-b) <= 1e-3*max(math.Abs(a), math.Abs(b), 1) }

// TestTheSpreadFromRunToRun is reckoned by hand.
func TestTheSpreadFromRunToRun(t *testing.T) {
	for name, c := range map[string]struct {
		of, less []float64
		want     Estimate
	}{
		// The variance of both is 2 : 2, the error √(1 × (1/2 + 1/2)) = 1.
		"two and two":    {[]float64{10, 11.41421356}, []float64{5, 6.41421356}, Estimate{5, 5 - 4.303, 5 + 4.303}},
		"one and two":    {[]float64{7}, []float64{4, 6}, Estimate{2, 2 - 12.706*math.Sqrt(3), 2 + 12.706*math.Sqrt(3)}},
		"runs all alike": {[]float64{3, 3}, []float64{2, 2}, Estimate{1, 1, 1}},
	} {
		if got := OfRuns(c.of, c.less); !about(got.Median, c.want.Median) || !about(got.Low, c.want.Low) || !about(got.High, c.want.High) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := RatioOfRuns([]float64{2, 8}, []float64{1, 1}); !about(got.Median, 4) || got.Low*got.High > 16.01 || got.Low > 1 {
		t.Errorf("of twice and eight times as much it is %+v", got)
	}
	if Mean([]float64{1, 4}) != 2 || Mean([]float64{-1, 4}) != 1.5 {
		t.Errorf("means are %v and %v", Mean([]float64{1, 4}), Mean([]float64{-1, 4}))
	}
	for free, want := range map[int]float64{1: 12.706, 20: 2.086, 21: 2.080, 30: 2.042, 120: 1.980, 10_000: 1.960} {
		if got := student(free); math.Abs(got-want) > 0.0015 {
			t.Errorf("with %d degrees of freedom it is %v, want %v", free, got, want)
		}
	}
}

func TestRunsTheOtherWayRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := rapid.SliceOfN(rapid.Float64Range(0.1, 10), 2, 6)
		a, b := runs.Draw(t, "a"), runs.Draw(t, "b")
		there, back := OfRuns(a, b), OfRuns(b, a)
		if there.Median != -back.Median || there.Low != -back.High || there.High != -back.Low || there.Low > there.High {
			t.Fatalf("there %+v, back %+v", there, back)
		}
	})
}

// TestTheIntervalHoldsWhatItShould counts how often it does: runs of one distribution do
// not differ.
func TestTheIntervalHoldsWhatItShould(t *testing.T) {
	random, missed := rand.New(rand.NewPCG(3, 4)), 0
	draw := func(n int) []float64 {
		all := make([]float64, n)
		for i := range all {
			all[i] = random.NormFloat64()
		}
		return all
	}
	const tries = 20_000
	for i := range tries {
		if e := OfRuns(draw(2+i%3), draw(2)); e.Low > 0 || e.High < 0 {
			missed++
		}
	}
	if part := float64(missed) / tries; part < 0.045 || part > 0.055 {
		t.Errorf("it misses %.1f %% of the time", 100*part)
	}
}
