package report

import (
	"math"
	"slices"
)

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
