package stats

import (
	"math"
	"slices"
)

// Slope is how much y grows per x: the median of the slopes between all pairs of
// points (Theil and Sen), which a few points that have nothing to do with the
// others do not move, with its 95 % interval. Fewer than three points with
// different x say nothing: the interval is without bounds.
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
	// How many pairs must be left out at each end follows from how Kendall's
	// statistic scatters where there is no slope.
	const sure = 1.96
	out := sure * math.Sqrt(n*(n-1)*(2*n+5)/18)
	low, high := int(math.Floor((pairs-out)/2)), int(math.Ceil((pairs+out)/2))
	return Estimate{Median: middle(slopes), Low: slopes[max(low, 0)], High: slopes[min(high, len(slopes)-1)]}
}
