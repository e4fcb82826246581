package stats

import (
	"math/rand/v2"
	"slices"
)

// Ratio is the ratio of the median of one run's samples to that of another's,
// with its 95 % interval: the percentile bootstrap's, each run drawn for itself.
// The other way round everything is exactly the other way round. All samples
// must be greater than 0; with none on a side it is the zero Estimate.
func Ratio(of, by []float64) Estimate {
	if slices.Compare(of, by) > 0 {
		e := Ratio(by, of)
		return Estimate{1 / e.Median, 1 / e.High, 1 / e.Low}
	}
	return two(of, by, func(a, b float64) float64 { return a / b })
}

// Difference is the median of one run's samples less that of another's, like
// [Ratio], for samples that may be 0 or less.
func Difference(of, less []float64) Estimate {
	if slices.Compare(of, less) > 0 {
		e := Difference(less, of)
		return Estimate{-e.Median, -e.High, -e.Low}
	}
	return two(of, less, func(a, b float64) float64 { return a - b })
}

// two is what two medians come to together.
func two(a, b []float64, together func(a, b float64) float64) Estimate {
	if len(a) == 0 || len(b) == 0 {
		return Estimate{}
	}
	random := rand.New(rand.NewPCG(1, 2))
	drawA, drawB := make([]float64, len(a)), make([]float64, len(b))
	drawn := make([]float64, resamples)
	for i := range drawn {
		drawn[i] = together(redrawn(random, a, drawA), redrawn(random, b, drawB))
	}
	slices.Sort(drawn)
	const outside = resamples / 40 // on each side, 2.5 %
	m := together(Median(a), Median(b))
	return Estimate{m, min(m, drawn[outside]), max(m, drawn[resamples-1-outside])}
}
