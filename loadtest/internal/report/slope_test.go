package report

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// noisy returns n points with a slope and noise.
func noisy(n int, slope, noise float64, random *rand.Rand) (x, y []float64) {
	for i := range n {
		x = append(x, float64(i))
		y = append(y, 100+slope*float64(i)+noise*random.NormFloat64())
	}
	return x, y
}

func TestTheSlopeOfALineIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Float64Range(-10, 10).Draw(t, "slope")
		n := rapid.IntRange(3, 60).Draw(t, "points")
		x, y := noisy(n, want, 0, rand.New(rand.NewPCG(1, 1)))
		got := Slope(x, y)
		if math.Abs(got.Median-want) > 1e-9 || got.Low > got.Median || got.High < got.Median {
			t.Errorf("a slope of %v was found to be %+v", want, got)
		}
	})
}

func TestTheIntervalHoldsTheSlopeMostly(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	held, all := 0, 300
	for range all {
		x, y := noisy(30, 0.5, 5, random)
		if got := Slope(x, y); got.Low <= 0.5 && 0.5 <= got.High {
			held++
		}
	}
	if held < all*90/100 || held == all {
		t.Errorf("the 95 %% interval held the slope %d times of %d", held, all)
	}
}

func TestAFewWildPointsDoNotMoveTheSlope(t *testing.T) {
	x, y := noisy(40, 0, 1, rand.New(rand.NewPCG(5, 6)))
	y[38], y[39] = 1e9, 1e9
	if got := Slope(x, y); math.Abs(got.Median) > 0.1 {
		t.Errorf("two points of forty made it %+v", got)
	}
}

func TestTooFewPointsAreSureOfNothing(t *testing.T) {
	for _, n := range []int{0, 1, 2} {
		x, y := noisy(n, 5, 0, rand.New(rand.NewPCG(1, 1)))
		if got := Slope(x, y); !math.IsInf(got.Low, -1) || !math.IsInf(got.High, 1) {
			t.Errorf("%d points are sure of %+v", n, got)
		}
	}
	if got := Slope([]float64{1, 1, 1}, []float64{1, 2, 3}); !math.IsInf(got.Low, -1) {
		t.Errorf("points at one place are sure of %+v", got)
	}
}
