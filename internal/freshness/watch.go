package freshness

import (
	"sync/atomic"
	"time"
)

// Span is how long a reading is fresh by default.
const Span = 50 * time.Microsecond

// Most is the maximum number of IDs from an allowance.
const Most = 8192

// start is the time from which elapsed counts.
var start = time.Now()

// elapsed returns nanoseconds of the runtime's monotonic clock.
func elapsed() uint64 { return uint64(time.Since(start)) }

// least is the shortest span worth an allowance: a few times the cost of
// reading the clock.
const least = 200 * time.Nanosecond

// A Watch makes allowances for the readings of one clock. Its zero value makes
// none. It is safe for concurrent use by multiple goroutines once Init has
// returned.
type Watch struct {
	on      bool
	counter func() uint64 // nil: Cycles
	span    time.Duration
	base    time.Time // samples count from this time

	// gen is odd while a goroutine makes an allowance. To do so, gen must be
	// unchanged since before that goroutine read the clock. So allowances
	// are made in the order of their readings, and no goroutine waits.
	gen  atomic.Uint64
	rate rate // owned by the goroutine that made gen odd
}

// Init makes the watch make allowances of at most this span. If the span is too
// short to be useful, Init does nothing.
func (w *Watch) Init(span time.Duration) {
	if span < least {
		return
	}
	counter := elapsed
	if hasCycles() {
		counter = nil
	}
	w.InitCounter(min(span, Span), start, counter)
}

// InitCounter makes the watch make allowances of this span by a counter, which
// may return anything; nil means Cycles. Samples count from base.
func (w *Watch) InitCounter(span time.Duration, base time.Time, counter func() uint64) {
	w.on, w.span, w.base, w.counter = true, span, base, counter
}

// On reports whether the watch makes any allowances.
func (w *Watch) On() bool { return w.on }

func (w *Watch) count() uint64 {
	if w.counter != nil {
		return w.counter()
	}
	return Cycles()
}

// An Observation is one reading of the clock. The zero value allows nothing.
type Observation struct {
	gen uint64
	sample
}

// Begin must be called just before the clock is read.
func (w *Watch) Begin() Observation {
	return Observation{gen: w.gen.Load(), sample: sample{lo: w.count()}}
}

// End must be called just after the clock has been read.
func (w *Watch) End(o Observation, now time.Time) Observation {
	if now == now.Round(0) {
		return Observation{gen: 1} // no monotonic part: a bubble
	}
	o.hi, o.at = w.count(), now.Sub(w.base)
	return o
}

// Allow allows everything below end, because of a reading of the clock that the
// word with the next slot has already reached. It does nothing if another
// allowance was made since the reading began.
func (w *Watch) Allow(a *Allowance, o Observation, end uint64) {
	if o.gen&1 != 0 || !w.gen.CompareAndSwap(o.gen, o.gen+1) {
		return
	}
	c := a.counterOf(w)
	span := w.rate.observe(o.sample, w.span)
	if span != c.span.Load() {
		c.span.Store(0) // so that no span is combined with another stamp
	}
	// Before the stamp: a reader that sees the stamp sees this end or a later
	// one.
	c.end.Store(end)
	c.stamp.Store(o.lo)
	c.span.Store(span)
	w.gen.Store(o.gen + 2)
}

// An Allowance is the range that may be used while a reading is fresh. Its
// zero value is empty. Only one Watch may make it.
type Allowance struct {
	cycles, other byCounter // by the processor's counter, or by the watch's own
}

// A byCounter is an allowance by one kind of counter.
type byCounter struct {
	span  atomic.Uint64 // in the counter's unit; 0: none
	stamp atomic.Uint64 // the counter just before the reading
	end   atomic.Uint64 // exclusive
}

// End returns the exclusive end of the range that may be used when Cycles
// returns c, or 0 if the reading is not fresh. It is inlined into its callers.
// Cycles cannot be, and one more nested call would be noticeable here.
func (a *Allowance) End(c uint64) uint64 {
	// The stamp before the others; see Allow.
	if fresh(c, a.cycles.stamp.Load(), a.cycles.span.Load()) {
		return a.cycles.end.Load()
	}
	return 0
}

// EndBy is End by the watch's own counter, if it has one.
func (a *Allowance) EndBy(w *Watch) uint64 {
	if w.counter == nil {
		return 0
	}
	_, end := a.Read(w)
	return end
}

// Read returns the reading of the allowance, and its End by the counter of the
// watch, whichever that is.
func (a *Allowance) Read(w *Watch) (Reading, uint64) {
	if !w.on {
		return Reading{}, 0
	}
	by := a.counterOf(w)
	c := w.count()
	stamp, span := by.stamp.Load(), by.span.Load() // in this order, as in End
	if !fresh(c, stamp, span) {
		return Reading{}, 0
	}
	r := Reading{stamp: stamp, cycles: span}
	if w.counter != nil {
		r = Reading{stamp: stamp, other: span}
	}
	return r, by.end.Load()
}

func (a *Allowance) counterOf(w *Watch) *byCounter {
	if w.counter != nil {
		return &a.other
	}
	return &a.cycles
}

// A Reading is a reading of the clock, to check later whether it is still
// fresh. The zero value never is. It is plain data.
type Reading struct {
	stamp         uint64 // the counter just before it
	cycles, other uint64 // the span by Cycles, or by the watch's own counter
}

// Fresh reports whether the reading is fresh when Cycles returns c, if Cycles
// is its counter.
func (r *Reading) Fresh(c uint64) bool { return fresh(c, r.stamp, r.cycles) }

// FreshBy is Fresh by the watch's own counter, if it has one.
func (r *Reading) FreshBy(w *Watch) bool {
	return r.other > 0 && fresh(w.count(), r.stamp, r.other)
}

// fresh is the test; see the package documentation.
func fresh(c, stamp, span uint64) bool {
	return c-stamp-1 < span
}
