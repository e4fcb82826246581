package report

import (
	"math"
	"math/rand/v2"
	"slices"
)

// resamples is the number of bootstrap samples. With more, the ends of a 95 % interval
// change by less than the last printed digit.
const resamples = 4000

// An Estimate is a median with its 95 % interval.
type Estimate struct {
	Median, Low, High float64
}

// Estimated returns the median of samples with the interval of a percentile bootstrap.
// Without samples it returns the zero Estimate.
func Estimated(samples []float64) Estimate {
	if len(samples) == 0 {
		return Estimate{}
	}
	medians := make([]float64, resamples)
	draw := make([]float64, len(samples))
	// With a fixed seed, reading a run twice gives the same interval.
	random := rand.New(rand.NewPCG(1, 2))
	for i := range medians {
		medians[i] = redrawn(random, samples, draw)
	}
	slices.Sort(medians)
	return Estimate{
		Median: Median(samples),
		Low:    quantile(medians, 0.025),
		High:   quantile(medians, 0.975),
	}
}

// redrawn returns the median of len(draw) values, drawn from samples with replacement.
func redrawn(random *rand.Rand, samples, draw []float64) float64 {
	for j := range draw {
		draw[j] = samples[random.IntN(len(samples))]
	}
	return middle(draw)
}

// Median returns the median of samples, or 0 without samples. It does not reorder samples.
func Median(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	return middle(slices.Clone(samples))
}

// middle sorts samples and returns their median.
func middle(samples []float64) float64 {
	slices.Sort(samples)
	half := len(samples) / 2
	if len(samples)%2 == 1 {
		return samples[half]
	}
	return (samples[half-1] + samples[half]) / 2
}

// quantile returns a quantile of sorted samples: the nearest sample below.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// Slope returns the growth of y per x: the median of the slopes between all pairs of points
// (Theil and Sen), with its 95 % interval. A few outliers do not affect it. With fewer than
// three points with different x, the interval is unbounded.
func Slope(x, y []float64) Estimate {
	var slopes []float64
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			if x[i] != x[j] {
				slopes = append(slopes, (y[j]-y[i])/(x[j]-x[i]))
			}
		}
	}
	if len(slopes) < 3 {
		return Estimate{Median: Median(slopes), Low: math.Inf(-1), High: math.Inf(1)}
	}
	slices.Sort(slopes)
	n, pairs := float64(len(x)), float64(len(slopes))
	// The number of pairs to leave out at each end follows from the variance of Kendall's
	// statistic without a slope.
	const sure = 1.96
	out := sure * math.Sqrt(n*(n-1)*(2*n+5)/18)
	low, high := int(math.Floor((pairs-out)/2)), int(math.Ceil((pairs+out)/2))
	return Estimate{Median: middle(slopes), Low: slopes[max(low, 0)], High: slopes[min(high, len(slopes)-1)]}
}
