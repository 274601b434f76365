package firn

import (
	"sync/atomic"

	"github.com/firnid/firn/internal/freshness"
)

// sealed is the bit of a term's word that says that it makes no more slots.
const sealed = 1 << 63

// A term is a generator's life under one grant: its node ID and its own
// count of slots. A slot is judged by the limit of the term it was taken from,
// whatever other term the generator has by then.
type term struct {
	grant    Grant
	composer composer

	// first is the first slot that may be used: where the grant begins, or later
	// because of what earlier terms used. Where the term is static it is only
	// known at the first call (start), and never below first.
	first  uint64
	static bool

	// origin is the word that the term began with: first, or 0 if static.
	origin uint64

	// floor is what the generator has used in earlier terms, see core.floor.
	floor uint64

	// start is the first slot of a static term, once it has one.
	start atomic.Uint64

	// What a single ID is taken with: read by all, written when a window opens.
	window freshness.Window

	// over is set before the word is sealed, for those who have slots left.
	over atomic.Bool

	_ apart

	// word is the next slot, 63 bits, and on top the bit sealed. Zero in a
	// static term means that it has not started. It only grows, and never past
	// limit.
	word atomic.Uint64

	_ apart // so that whoever moves the word takes nothing else from other processors

	// limit is the slot at which the grant, or the layout, ends. It only grows.
	limit atomic.Uint64

	// debt remembers the last reservation that ran ahead of the clock.
	debt atomic.Pointer[debt]

	// skipped counts slots that the clock passed by unused, so that the number
	// of IDs made is word - origin - skipped. Whoever moves the word over unused
	// slots adds 1 to pulls before and to pulled after, so that a reader of both
	// can tell whether skipped belongs to the word it has seen.
	skipped       atomic.Uint64
	pulls, pulled atomic.Uint64
}

// apart is two cache lines: processors fetch them in pairs.
type apart [128]byte

// A debt is a reservation of the slots [from, to), made at clock now. The word
// after any of them lies in (from, to].
type debt struct {
	from, to uint64
	now      reading
}

// covers reports whether the slot before word was taken by the reservation.
func (d *debt) covers(word uint64) bool { return d.from < word && word <= d.to }

// reached is the end of the slots that the generator has used when the term's
// word is this: 0 if it has used none.
func (t *term) reached(word uint64) uint64 {
	if word > max(t.first, t.start.Load()) {
		return word
	}
	return t.floor
}

// begin sets the first slot and, unless the term is static, the word.
func (t *term) begin(first uint64) {
	t.first = first
	if !t.static {
		t.origin = first
		t.word.Store(first)
	}
}

// quick takes the next slot if it may be used by a reading of the clock that is
// still fresh. It is take(1) without the clock, and all that is true of take is
// true of it, whatever the counter says that tells what is fresh:
//
// The end of the window was computed by take, from a reading of the clock and
// from the term's limit, after the word had reached that clock. So a slot below
// it that the word stands at is in the grant, no further ahead of that reading
// than MaxAhead allows, and not behind it. The swap takes the slot only if the
// word still stands there, so slots are unique, and one that is refused stays
// where it was, however many callers there are. A sealed word is above every
// end, as its top bit is set.
//
// It swaps and does not add, though an add would cost less under contention:
// see docs/decisions/generator.md.
func (t *term) quick() (slot uint64, ok bool) {
	return t.below(t.window.End(freshness.Cycles()))
}

// below takes the next slot if it lies below end.
func (t *term) below(end uint64) (slot uint64, ok bool) {
	for {
		v := t.word.Load()
		if v >= end {
			return 0, false
		}
		if t.word.CompareAndSwap(v, v+1) {
			return v, true
		}
	}
}

// someBelow takes up to n slots, and at least one, if the next lies below end.
func (t *term) someBelow(n, end uint64) (slot, got uint64, ok bool) {
	for {
		v := t.word.Load()
		if v >= end {
			return 0, 0, false
		}
		n := min(n, end-v)
		if t.word.CompareAndSwap(v, v+n) {
			return v, n, true
		}
	}
}

// allBelow takes the next n slots if all lie below end.
func (t *term) allBelow(n, end uint64) (slot uint64, ok bool) {
	for {
		v := t.word.Load()
		if v >= end || n > end-v {
			return 0, false
		}
		if t.word.CompareAndSwap(v, v+n) {
			return v, true
		}
	}
}

// swap moves the word from v over the slots [s, s+n), and reports whether it
// had still been v.
func (t *term) swap(v, s, n uint64) bool {
	if s == v {
		return t.word.CompareAndSwap(v, s+n)
	}
	t.pulls.Add(1)
	ok := t.word.CompareAndSwap(v, s+n)
	if ok {
		t.skipped.Add(s - v)
	}
	t.pulled.Add(1)
	return ok
}

// made is how many slots were taken. It is not known while somebody moves the
// word over unused slots: then ok is false.
func (t *term) made() (n uint64, ok bool) {
	done := t.pulled.Load()
	v, skipped := t.word.Load()&^sealed, t.skipped.Load()
	return v - t.origin - skipped, t.pulls.Load() == done
}

// end is the exclusive end of the slots taken, and whether any was.
func (t *term) end() (slot uint64, any bool) {
	v := t.word.Load() &^ sealed
	return v, v > max(t.first, t.start.Load())
}
