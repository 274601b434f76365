package freshness

import (
	"runtime"
	"time"

	"github.com/firnid/firn/internal/mutant"
)

// A sample is the counter just before and just after a reading of the clock,
// and that reading's monotonic part.
type sample struct {
	lo, hi uint64
	at     time.Duration
}

// rate learns how fast a counter counts, from samples, and notices when that
// changes. It is believed when two intervals have agreed on it, since a counter
// that jumps looks like a fast one in one of them.
type rate struct {
	begun bool
	from  sample // what the next one is compared with
	span  uint64 // by the last interval; 0: there was none
	sure  bool   // and the one before
}

// interval is the shortest time between two samples that says something: long
// against the cost of a reading, and against the steps of the monotonic clock,
// which are half a millisecond and more on Windows.
func interval() time.Duration {
	if runtime.GOOS == "windows" {
		return 50 * time.Millisecond
	}
	return 20 * time.Microsecond
}

// fastest is more counts in a nanosecond than any processor's counter makes.
const fastest = 16

// observe takes a sample and returns how much the counter counts at least in
// the given time, or 0 if that is not known.
func (r *rate) observe(s sample, span time.Duration) uint64 {
	if mutant.On(mutant.RateBelieved) && r.sure {
		return r.span
	}
	passed := s.at - r.from.at
	back := s.lo < r.from.hi || s.hi < s.lo
	if !r.begun || back || passed < 0 {
		*r = rate{begun: true, from: s}
		return 0
	}
	if passed >= interval() {
		r.compare(s, float64(span)/float64(passed))
	}
	if !r.sure {
		return 0
	}
	return r.span
}

// compare compares a sample with the one before. What the counter says times
// scale is what it counts in a span.
func (r *rate) compare(s sample, scale float64) {
	// What it counted between the two readings lies between these.
	low, high := float64(s.lo-r.from.hi)*scale, float64(s.hi-r.from.lo)*scale
	was := float64(r.span)
	agrees := low <= was*1.25 && high >= was*0.75
	switch {
	case low > fastest*scale*float64(s.at-r.from.at):
		*r = rate{begun: true, from: s} // it has jumped
	case high-low <= low/8:
		*r = rate{begun: true, from: s, span: uint64(min(low, 1<<62)), sure: agrees}
	case !agrees:
		// Something came between the clock and the counter, but not only that.
		*r = rate{begun: true, from: s}
	}
	// Otherwise the longer the interval gets, the less what came between matters.
}
