package metrics

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// bounds are the upper bounds of the buckets of requests, in order; longer
// requests are in the last bucket.
var bounds = [...]time.Duration{
	10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond,
	250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 10 * time.Second,
}

// A histogram records many durations at once, which prometheus.Histogram
// cannot: the commands of a pipeline are answered together. It is safe for
// concurrent use; a concurrent scrape may see a count without its part of the
// sum.
type histogram struct {
	counts [len(bounds) + 1]atomic.Uint64
	sum    atomic.Int64 // in nanoseconds
}

// observe adds n observations of d.
func (h *histogram) observe(d time.Duration, n uint64) {
	i, _ := slices.BinarySearch(bounds[:], d)
	h.counts[i].Add(n)
	h.sum.Add(int64(d) * int64(n))
}

// metric returns the histogram for a scrape.
func (h *histogram) metric(desc *prometheus.Desc, labels ...string) prometheus.Metric {
	count, below := uint64(0), make(map[float64]uint64, len(bounds))
	for i := range h.counts {
		count += h.counts[i].Load()
		if i < len(bounds) {
			below[bounds[i].Seconds()] = count
		}
	}
	return prometheus.MustNewConstHistogram(desc, count, time.Duration(h.sum.Load()).Seconds(), below, labels...)
}
