package freshness

import (
	"runtime"
	"time"
)

// A sample is the counter just before and just after a reading of the clock,
// and the monotonic part of that reading.
type sample struct {
	lo, hi uint64
	at     time.Duration
}

// A rate learns the rate of a counter from samples, and detects when it
// changes. It is trusted when two intervals have agreed on it, because in a
// single interval a counter that jumps looks like a fast one.
type rate struct {
	begun   bool
	from    sample // the start of the next interval
	span    uint64 // by the last interval; 0 if unknown
	trusted bool   // the previous interval agreed
}

// minInterval returns the shortest useful time between two samples: long
// compared with the cost of a reading, and with the resolution of the monotonic
// clock, which is half a millisecond and more on Windows.
func minInterval() time.Duration {
	if runtime.GOOS == "windows" {
		return 50 * time.Millisecond
	}
	return 20 * time.Microsecond
}

// maxPerNano exceeds the counts per nanosecond of any processor's counter.
const maxPerNano = 16

// observe takes a sample and returns the minimum that the counter counts in the
// given time, or 0 if that is unknown.
func (r *rate) observe(s sample, span time.Duration) uint64 {
	passed := s.at - r.from.at
	back := s.lo < r.from.hi || s.hi < s.lo
	if !r.begun || back || passed < 0 {
		*r = rate{begun: true, from: s}
		return 0
	}
	if passed >= minInterval() {
		r.compare(s, float64(span)/float64(passed))
	}
	if !r.trusted {
		return 0
	}
	return r.span
}

// compare compares a sample with the previous one. The counter's difference
// times scale is what it counts in a span.
func (r *rate) compare(s sample, scale float64) {
	// The counts between the two readings lie between these.
	low, high := float64(s.lo-r.from.hi)*scale, float64(s.hi-r.from.lo)*scale
	was := float64(r.span)
	agrees := low <= was*1.25 && high >= was*0.75
	switch {
	case low > maxPerNano*scale*float64(s.at-r.from.at):
		*r = rate{begun: true, from: s} // it has jumped
	case high-low <= low/8:
		*r = rate{begun: true, from: s, span: uint64(min(low, 1<<62)), trusted: agrees}
	case !agrees:
		// The readings were interrupted, but that does not explain everything.
		*r = rate{begun: true, from: s}
	}
	// Otherwise, the longer the interval gets, the less an interruption
	// matters.
}
