package firn

import (
	"fmt"
	"time"
)

// Range returns the lowest and the highest possible ID with a time t in from ≤
// t < to; both are inclusive. The time of an ID is the start of its tick, as in
// Decompose, so adjacent ranges neither overlap nor leave a gap.
//
// A range that begins before the epoch or ends after the last tick is cut to
// what the layout can hold. It is an error if nothing is left, if no tick
// begins within the range, or if the layout is not ordered by time.
func (l Layout) Range(from, to time.Time) (lo, hi ID, err error) {
	a, b, err := l.rangeWide(from, to, 64, "Range128")
	return ID(a.lo), ID(b.lo), err
}

// Range128 is Range for layouts of 128 bits.
func (l Layout) Range128(from, to time.Time) (lo, hi ID128, err error) {
	a, b, err := l.rangeWide(from, to, 128, "Range")
	return ID128FromUint64s(a.hi, a.lo), ID128FromUint64s(b.hi, b.lo), err
}

// rangeWide implements Range; size and twin are those of checkBits.
func (l *Layout) rangeWide(from, to time.Time, size uint8, twin string) (lo, hi wide, err error) {
	if err := l.checkBits(size, twin); err != nil {
		return lo, hi, err
	}
	if !l.timeOnTop() {
		return lo, hi, fmt.Errorf("firn: IDs of layout %s are not ordered by time, so no range of IDs matches "+
			"a range of time", *l)
	}
	if !from.Before(to) {
		return lo, hi, fmt.Errorf("firn: the range is empty: it begins at %s and ends at %s",
			formatTime(from), formatTime(to))
	}
	most := mask(l.timeBits)
	first, rest, where := l.tickAt(from)
	// The last tick that begins before to is the one that holds the instant
	// before to.
	last, _, end := l.tickAt(to.Add(-1))
	switch {
	case where > 0 || first > most || first == most && rest > 0:
		return lo, hi, fmt.Errorf("firn: the range begins at %s, after the last tick of layout %s (%s)",
			formatTime(from), *l, formatTime(l.Last()))
	case end < 0:
		return lo, hi, fmt.Errorf("firn: the range ends at %s, before the epoch of layout %s (%s)",
			formatTime(to), *l, formatTime(l.Epoch()))
	case end > 0:
		last = most
	}
	if rest > 0 {
		first++
	}
	if last = min(last, most); first > last {
		return lo, hi, fmt.Errorf("firn: no tick of %v begins from %s to before %s", l.unit, formatTime(from), formatTime(to))
	}
	lo = l.assemble(first, 0, 0)
	hi = l.assemble(last, l.MaxNode(), l.MaxSeq())
	for _, p := range l.pieces[:l.n] {
		if p.field == FieldRand {
			hi = hi.or(ones(p.width).shl(p.pos))
		}
	}
	return lo, hi, nil
}
