package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func run() *rapid.Generator[[]float64] { return rapid.SliceOfN(rapid.Float64Range(0.1, 10), 1, 6) }

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

func TestTheOtherWayRoundIsTheOtherWayRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := run().Draw(t, "a"), run().Draw(t, "b")
		r, back := Ratio(a, b), Ratio(b, a)
		if !near(r.Median, 1/back.Median) || !near(r.Low, 1/back.High) || !near(r.High, 1/back.Low) {
			t.Fatalf("a ratio of %+v is %+v the other way round", r, back)
		}
		d, back := Difference(a, b), Difference(b, a)
		if d.Median != -back.Median || d.Low != -back.High || d.High != -back.Low {
			t.Fatalf("a difference of %+v is %+v the other way round", d, back)
		}
	})
}

func TestAnIntervalHoldsItsRatio(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := run().Draw(t, "a"), run().Draw(t, "b")
		if r := Ratio(a, b); !(r.Low <= r.Median && r.Median <= r.High) || !near(r.Median, Median(a)/Median(b)) {
			t.Fatalf("%v to %v is %+v", a, b, r)
		}
	})
}

func TestARunIsLikeItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := run().Draw(t, "a")
		if r, d := Ratio(a, a), Difference(a, a); r.Median != 1 || r.Low > 1 || r.High < 1 || d.Median != 0 || d.Low > 0 || d.High < 0 {
			t.Fatalf("%v to itself is %+v, less itself %+v", a, r, d)
		}
	})
}

func TestNothingComesToNothing(t *testing.T) {
	if r, d := Ratio(nil, []float64{1}), Difference([]float64{1}, nil); r != (Estimate{}) || d != (Estimate{}) {
		t.Errorf("they are %+v and %+v", r, d)
	}
}

// TestTheIntervalOfTwoCovers draws ten samples on each side around medians in a
// known ratio, many times: see [TestTheIntervalCovers].
func TestTheIntervalOfTwoCovers(t *testing.T) {
	const runs, truth = 300, 1.5
	random := rand.New(rand.NewPCG(5, 6))
	held := 0
	for range runs {
		a, b := make([]float64, 10), make([]float64, 10)
		for i := range a {
			a[i], b[i] = truth*(1+random.NormFloat64()/15), 1+random.NormFloat64()/15
		}
		if r := Ratio(a, b); r.Low <= truth && truth <= r.High {
			held++
		}
	}
	if held < runs*85/100 || held == runs {
		t.Errorf("%d of %d intervals hold the true ratio", held, runs)
	}
}
