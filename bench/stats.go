package main

import (
	"math"
	"slices"
)

// A spread is the median of samples with their quartiles. The zero spread has
// no samples.
type spread struct {
	median, low, high float64
	n                 int
}

// spreadOf sorts the samples and computes their quartiles, by linear
// interpolation. It omits samples that are not finite.
func spreadOf(samples []float64) spread {
	samples = slices.DeleteFunc(slices.Clone(samples), func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	if len(samples) == 0 {
		return spread{}
	}
	slices.Sort(samples)
	return spread{quantile(samples, 0.5), quantile(samples, 0.25), quantile(samples, 0.75), len(samples)}
}

// quantile returns a quantile of sorted samples, of which there is at least
// one; 0 ≤ q ≤ 1.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// ratios divides sample by sample: a[i] and b[i] were measured at the same
// time, so that disturbances affect both. Samples without a partner are
// omitted.
func ratios(a, b []float64) []float64 {
	out := make([]float64, 0, min(len(a), len(b)))
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			out = append(out, a[i]/b[i])
		}
	}
	return out
}
