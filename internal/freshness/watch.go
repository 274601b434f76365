package freshness

import (
	"sync/atomic"
	"time"
)

// Span is how long a reading is fresh by default.
const Span = 50 * time.Microsecond

// Most is the maximum number of IDs from a window.
const Most = 8192

// start is the time from which elapsed counts.
var start = time.Now()

// elapsed returns nanoseconds of the runtime's monotonic clock.
func elapsed() uint64 { return uint64(time.Since(start)) }

// least is the shortest span worth a window: a few times the cost of reading
// the clock.
const least = 200 * time.Nanosecond

// A Watch opens windows for the readings of one clock. Its zero value opens
// none. It is safe for concurrent use by multiple goroutines once Init has
// returned.
type Watch struct {
	on      bool
	counter func() uint64 // nil: Cycles
	span    time.Duration
	base    time.Time // samples count from this time

	// gen is odd while a goroutine opens a window. To do so, gen must be
	// unchanged since before that goroutine read the clock. So windows are
	// opened in the order of their readings, and no goroutine waits.
	gen  atomic.Uint64
	rate rate // owned by the goroutine that made gen odd
}

// Init makes the watch open windows of at most this span. If the span is too
// short to be useful, Init does nothing.
func (w *Watch) Init(span time.Duration) {
	if span < least {
		return
	}
	w.on, w.span, w.base = true, min(span, Span), start
	if !hasCycles() {
		w.counter = elapsed
	}
}

// InitCounter is Init with a counter of the caller's, which may return
// anything.
func (w *Watch) InitCounter(span time.Duration, base time.Time, counter func() uint64) {
	w.on, w.span, w.base, w.counter = true, span, base, counter
}

// On reports whether the watch opens any windows.
func (w *Watch) On() bool { return w.on }

func (w *Watch) count() uint64 {
	if w.counter != nil {
		return w.counter()
	}
	return Cycles()
}

// A Look is one reading of the clock. The zero value opens no window.
type Look struct {
	gen uint64
	sample
}

// Begin must be called just before the clock is read.
func (w *Watch) Begin() Look {
	return Look{gen: w.gen.Load(), sample: sample{lo: w.count()}}
}

// End must be called just after the clock has been read.
func (w *Watch) End(l Look, now time.Time) Look {
	if now == now.Round(0) {
		return Look{gen: 1} // no monotonic part: a bubble
	}
	l.hi, l.at = w.count(), now.Sub(w.base)
	return l
}

// Open opens the window for everything below end, as allowed by a reading of
// the clock that the word with the next slot has already reached. It does
// nothing if another window was opened since the reading began.
func (w *Watch) Open(v *Window, l Look, end uint64) {
	if l.gen&1 != 0 || !w.gen.CompareAndSwap(l.gen, l.gen+1) {
		return
	}
	o := v.opening(w)
	span := w.rate.observe(l.sample, w.span)
	if span != o.span.Load() {
		o.span.Store(0) // so that no span is combined with another stamp
	}
	// Before the stamp: a reader that sees the stamp sees this end or a later
	// one.
	o.end.Store(end)
	o.stamp.Store(l.lo)
	o.span.Store(span)
	w.gen.Store(l.gen + 2)
}

// A Window is the range that may be used while a reading is fresh. Its zero
// value is closed. Only one Watch may open it.
type Window struct {
	cycles, other opening // by the processor's counter, or by the watch's own
}

// An opening is a window for one kind of counter.
type opening struct {
	span  atomic.Uint64 // in the counter's unit; 0: closed
	stamp atomic.Uint64 // the counter just before the reading
	end   atomic.Uint64 // exclusive
}

// End returns the exclusive end of the range that may be used when Cycles
// returns c, or 0 if the reading is not fresh. It is inlined into its callers.
// Cycles cannot be, and one more nested call would be noticeable here.
func (v *Window) End(c uint64) uint64 {
	// The stamp before the others; see Open.
	if fresh(c, v.cycles.stamp.Load(), v.cycles.span.Load()) {
		return v.cycles.end.Load()
	}
	return 0
}

// EndBy is End by the watch's own counter, if it has one.
func (v *Window) EndBy(w *Watch) uint64 {
	if w.counter == nil {
		return 0
	}
	_, end := v.Read(w)
	return end
}

// Read returns the reading of the window, and its End by the counter of the
// watch, whichever that is.
func (v *Window) Read(w *Watch) (Reading, uint64) {
	if !w.on {
		return Reading{}, 0
	}
	o := v.opening(w)
	c := w.count()
	stamp, span := o.stamp.Load(), o.span.Load() // in this order, as in End
	if !fresh(c, stamp, span) {
		return Reading{}, 0
	}
	r := Reading{stamp: stamp, cycles: span}
	if w.counter != nil {
		r = Reading{stamp: stamp, other: span}
	}
	return r, o.end.Load()
}

func (v *Window) opening(w *Watch) *opening {
	if w.counter != nil {
		return &v.other
	}
	return &v.cycles
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
