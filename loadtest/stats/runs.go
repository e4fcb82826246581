package stats

import "math"

// OfRuns is how much more the values of some runs are than those of others, on the
// average, with its 95 % interval from how much they differ from run to run: Student's,
// with one spread for both sides, so that one run on one of them is enough. There must
// be a run on each side, and three in all. The other way round everything is exactly
// the other way round.
func OfRuns(of, less []float64) Estimate {
	a, spreadA := meanOf(of)
	b, spreadB := meanOf(less)
	n, m := float64(len(of)), float64(len(less))
	free := len(of) + len(less) - 2
	off := student(free) * math.Sqrt((spreadA+spreadB)/float64(free)*(1/n+1/m))
	return Estimate{a - b, a - b - off, a - b + off}
}

// RatioOfRuns is like [OfRuns] how many times the values are those of others, by their
// geometric means. All must be greater than 0.
func RatioOfRuns(of, by []float64) Estimate {
	e := OfRuns(logs(of), logs(by))
	return Estimate{math.Exp(e.Median), math.Exp(e.Low), math.Exp(e.High)}
}

// Mean is the average of values, the geometric one where all are greater than 0, as
// [RatioOfRuns] takes it.
func Mean(values []float64) float64 {
	for _, v := range values {
		if v <= 0 {
			m, _ := meanOf(values)
			return m
		}
	}
	m, _ := meanOf(logs(values))
	return math.Exp(m)
}

func logs(values []float64) []float64 {
	all := make([]float64, len(values))
	for i, v := range values {
		all[i] = math.Log(v)
	}
	return all
}

// meanOf is the mean, and the sum of the squares of what values are off it.
func meanOf(values []float64) (mean, squares float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, squares
}

// student is how many standard errors a 95 % interval reaches to each side, by the
// degrees of freedom.
func student(free int) float64 {
	few := []float64{
		12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
		2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
	}
	if free <= len(few) {
		return few[max(free, 1)-1]
	}
	// Cornish and Fisher's series, exact to three digits from here on.
	const z = 1.959964
	n := float64(free)
	return z + (z*z*z+z)/(4*n) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*n*n)
}
