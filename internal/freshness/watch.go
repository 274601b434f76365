package freshness

import (
	"sync/atomic"
	"time"

	"github.com/firnid/firn/internal/mutant"
)

// Span is how long a reading is fresh, unless the caller wants it shorter.
const Span = 50 * time.Microsecond

// Most is how many IDs a window gives at most.
const Most = 8192

// least is the shortest span worth a window: what a look at the clock costs, a
// few times over.
const least = 200 * time.Nanosecond

// A Watch opens windows for the readings of one clock. Its zero value opens
// none. Many goroutines may use one at the same time, as soon as Init is done.
type Watch struct {
	on      bool
	counter func() uint64 // nil: Cycles
	span    time.Duration
	base    time.Time // samples count from here

	// gen is odd while somebody opens a window. Who does must have found it as it
	// was before their own look at the clock, so windows are opened in the order
	// of the looks they come from, and nobody waits.
	gen  atomic.Uint64
	rate rate // of whoever made gen odd
}

// Init makes the watch open windows of at most this span. A span that is too
// short to be worth it leaves it as it is.
func (w *Watch) Init(span time.Duration) {
	if span < least {
		return
	}
	w.on, w.span, w.base = true, min(span, Span), start
	if !hasCycles() {
		w.counter = elapsed
	}
}

// InitCounter is Init with a counter of the caller's, which may say what it
// likes.
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

// A Look is a look at the clock. The zero value opens no window.
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

// Open opens the window for what lies below end, which the look at the clock
// has allowed. The word that counts must have reached that clock already. It
// opens none if another was opened since the look began.
func (w *Watch) Open(v *Window, l Look, end uint64) {
	if l.gen&1 != 0 || !w.gen.CompareAndSwap(l.gen, l.gen+1) {
		return
	}
	if mutant.On(mutant.EndForgotten) {
		end = 1 << 62
	}
	o := v.opening(w)
	span := w.rate.observe(l.sample, w.span)
	if span != o.span.Load() {
		o.span.Store(0) // so that no span is taken for another stamp's
	}
	// Before the stamp: whoever sees the stamp sees this end, or a later one.
	o.end.Store(end)
	o.stamp.Store(l.lo)
	o.span.Store(span)
	w.gen.Store(l.gen + 2)
}

// A Window says what may be used while a reading is fresh. Its zero value is
// shut. It is opened by a Watch, of which it must always be the same.
type Window struct {
	cycles, other opening // by the processor's counter, or by the watch's own
}

// An opening is a window for one kind of counter.
type opening struct {
	span  atomic.Uint64 // in the counter's unit; 0: shut
	stamp atomic.Uint64 // the counter just before the reading
	end   atomic.Uint64 // exclusive
}

// End is the exclusive end of what may be used when Cycles says c, or 0 if the
// reading is not fresh. It becomes part of its caller: Cycles cannot, and a
// call of a call is noticed here.
func (v *Window) End(c uint64) uint64 {
	// The stamp before the others, see Open.
	if fresh(c, v.cycles.stamp.Load(), v.cycles.span.Load()) {
		return v.cycles.end.Load()
	}
	return 0
}

// EndBy is End by the counter of the watch, where it has one of its own.
func (v *Window) EndBy(w *Watch) uint64 {
	if w.counter == nil {
		return 0
	}
	_, end := v.Read(w)
	return end
}

// Read is End by the counter of the watch, whichever it is, and the reading
// that the window is of.
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

// A Reading is one of the clock, to see whether it is still fresh. The zero
// value never is. It is plain data.
type Reading struct {
	stamp         uint64 // the counter just before it
	cycles, other uint64 // the span by Cycles, or by the watch's own counter
}

// Fresh reports whether the reading is fresh when Cycles says c, if it is by
// that.
func (r *Reading) Fresh(c uint64) bool { return fresh(c, r.stamp, r.cycles) }

// FreshBy is Fresh by the counter of the watch, where it has one of its own.
func (r *Reading) FreshBy(w *Watch) bool {
	return r.other > 0 && fresh(w.count(), r.stamp, r.other)
}

// fresh is the test: see the package's comment.
func fresh(c, stamp, span uint64) bool {
	if mutant.Enabled {
		return mistaken(c, stamp, span)
	}
	return c-stamp-1 < span
}

// mistaken is fresh with the mistakes.
func mistaken(c, stamp, span uint64) bool {
	passed := c - stamp
	switch {
	case span == 0: // shut
		return false
	case mutant.On(mutant.AlwaysFresh):
		return true
	case mutant.On(mutant.StillIsFresh):
		return passed < span
	case mutant.On(mutant.BackIsFresh):
		return int64(passed) < int64(span) && passed != 0
	}
	return passed-1 < span
}
