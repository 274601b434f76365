package freshness

import (
	"sync/atomic"
	"time"
)

// MaxSpan is how long a reading is fresh, unless a tick is short.
const MaxSpan = 50 * time.Microsecond

// MaxIDs is the maximum number of IDs from an allowance.
const MaxIDs = 8192

// minSpan is the shortest span worth an allowance: a few times the cost of
// reading the clock.
const minSpan = 200 * time.Nanosecond

// A Tracker makes allowances for the readings of one clock. Its zero value
// makes none. It is safe for concurrent use by multiple goroutines once Init
// has returned.
type Tracker struct {
	counter func() uint64 // nil: no allowances
	span    time.Duration
	base    time.Time // samples count from this time

	// gen is odd while a goroutine makes an allowance. To do so, gen must be
	// unchanged since before that goroutine read the clock. So allowances
	// are made in the order of their readings, and no goroutine waits.
	gen  atomic.Uint64
	rate rate // owned by the goroutine that made gen odd
}

// Init makes the tracker make allowances of at most this span. It does nothing
// if the span is too short to be useful, or if the processor has no counter of
// constant rate.
func (t *Tracker) Init(span time.Duration) {
	if span >= minSpan && hasCycles() {
		t.InitCounter(min(span, MaxSpan), time.Now(), Cycles)
	}
}

// InitCounter makes the tracker make allowances of this span by a counter,
// which may return anything. Samples count from base.
func (t *Tracker) InitCounter(span time.Duration, base time.Time, counter func() uint64) {
	t.span, t.base, t.counter = span, base, counter
}

// On reports whether the tracker makes any allowances.
func (t *Tracker) On() bool { return t.counter != nil }

// An Observation is one reading of the clock. The zero value allows nothing.
type Observation struct {
	gen uint64
	sample
}

// Begin must be called just before the clock is read.
func (t *Tracker) Begin() Observation {
	return Observation{gen: t.gen.Load(), sample: sample{lo: t.counter()}}
}

// End must be called just after the clock has been read.
func (t *Tracker) End(o Observation, now time.Time) Observation {
	if now == now.Round(0) {
		return Observation{gen: 1} // no monotonic part: a bubble
	}
	o.hi, o.at = t.counter(), now.Sub(t.base)
	return o
}

// Allow allows everything below end, because of a reading of the clock that the
// word with the next slot has already reached. It does nothing if another
// allowance was made since the reading began.
func (t *Tracker) Allow(a *Allowance, o Observation, end uint64) {
	if o.gen&1 != 0 || !t.gen.CompareAndSwap(o.gen, o.gen+1) {
		return
	}
	span := t.rate.observe(o.sample, t.span)
	if span != a.span.Load() {
		a.span.Store(0) // so that no span is combined with another stamp
	}
	// Before the stamp: a reader that sees the stamp sees this end or a later
	// one.
	a.end.Store(end)
	a.stamp.Store(o.lo)
	a.span.Store(span)
	t.gen.Store(o.gen + 2)
}

// An Allowance is the range that may be used while a reading is fresh. Its
// zero value is empty. Only one Tracker may make it.
type Allowance struct {
	span  atomic.Uint64 // in the counter's unit; 0: none
	stamp atomic.Uint64 // the counter just before the reading
	end   atomic.Uint64 // exclusive
}

// End returns the exclusive end of the range that may be used when the
// tracker's counter is c, or 0 if the reading is not fresh. It is inlined into
// its callers. Cycles cannot be, and one more nested call would be noticeable
// here.
func (a *Allowance) End(c uint64) uint64 {
	// The stamp before the others; see Allow.
	if fresh(c, a.stamp.Load(), a.span.Load()) {
		return a.end.Load()
	}
	return 0
}

// fresh is the test; see the package documentation.
func fresh(c, stamp, span uint64) bool {
	return c-stamp-1 < span
}
