// Package stats calculates medians of a few repetitions with bootstrap intervals. It has no
// state: the same samples give the same interval.
package stats

import (
	"math/rand/v2"
	"slices"
)

// resamples is how often the bootstrap draws; the ends of a 95 % interval move
// by less than the last printed digit from there on.
const resamples = 4000

// An Estimate is a median with its 95 % interval.
type Estimate struct {
	Median, Low, High float64
}

// Estimated is the median of samples with the percentile bootstrap's interval
// around it. No samples at all are the zero Estimate.
func Estimated(samples []float64) Estimate {
	if len(samples) == 0 {
		return Estimate{}
	}
	medians := make([]float64, resamples)
	draw := make([]float64, len(samples))
	// A fixed seed: two readings of one run must not disagree.
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

// redrawn is the median of as many samples as draw has room for, drawn from
// samples with replacement.
func redrawn(random *rand.Rand, samples, draw []float64) float64 {
	for j := range draw {
		draw[j] = samples[random.IntN(len(samples))]
	}
	return middle(draw)
}

// Median is the middle of samples, which it leaves in their order; 0 if there are none.
func Median(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	return middle(slices.Clone(samples))
}

// middle sorts samples and takes their middle.
func middle(samples []float64) float64 {
	slices.Sort(samples)
	half := len(samples) / 2
	if len(samples)%2 == 1 {
		return samples[half]
	}
	return (samples[half-1] + samples[half]) / 2
}

// quantile reads a quantile from sorted samples, the nearest one below.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
