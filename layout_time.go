package firn

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"
)

// tickIn returns the tick that t lies in, or a *RangeError.
func (l *Layout) tickIn(t time.Time) (uint64, error) {
	tick, _, where := l.tickAt(t)
	if where != 0 || tick > mask(l.timeBits) {
		return 0, &RangeError{"time", formatTime(t), formatTime(l.Epoch()), formatTime(l.End().Add(-1))}
	}
	return tick, nil
}

// tickAt returns the number of ticks from the epoch to t, and the nanoseconds
// from the start of that tick to t. where is negative if t is before the epoch,
// and positive if the number of ticks exceeds 64 bits.
func (l *Layout) tickAt(t time.Time) (tick, rest uint64, where int) {
	hi, lo, before := l.sinceEpoch(t)
	if before {
		return 0, 0, -1
	}
	if hi >= uint64(l.unit) {
		return 0, 0, 1
	}
	tick, rest = bits.Div64(hi, lo, uint64(l.unit))
	return tick, rest, 0
}

// sinceEpoch returns the time from the epoch to t in nanoseconds, as 128 bits:
// an int64 of nanoseconds spans only 292 years, and Boundary's time field 584
// million.
func (l *Layout) sinceEpoch(t time.Time) (hi, lo uint64, before bool) {
	epochSec := l.epoch / 1000
	epochNsec := l.epoch % 1000 * 1e6
	if epochNsec < 0 {
		epochSec, epochNsec = epochSec-1, epochNsec+1e9
	}
	if t.Unix() < epochSec {
		return 0, 0, true
	}
	// An epoch lies in the years 1 to 9999, but t may be any time: as unsigned
	// numbers, the difference cannot overflow.
	sec, nsec := uint64(t.Unix())-uint64(epochSec), int64(t.Nanosecond())-epochNsec
	if nsec < 0 {
		if sec == 0 {
			return 0, 0, true
		}
		sec, nsec = sec-1, nsec+1e9
	}
	hi, lo = bits.Mul64(sec, 1e9)
	lo, carry := bits.Add64(lo, uint64(nsec), 0)
	return hi + carry, lo, false
}

// timeOf returns the start of a tick. It cannot fail for a tick that fits a
// parsed layout (see maxSeconds).
func (l *Layout) timeOf(tick uint64) (time.Time, error) {
	if hi, lo := bits.Mul64(tick, uint64(l.unit)); hi < 1e9 {
		if sec, nsec := bits.Div64(hi, lo, 1e9); sec <= maxSeconds {
			epoch := time.UnixMilli(l.epoch)
			return time.Unix(epoch.Unix()+int64(sec), int64(epoch.Nanosecond())+int64(nsec)).UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("firn: tick %d of %v is beyond what a time can represent", tick, l.unit)
}

// endTick returns the first tick that the layout, or the 63 bits in which a
// generator counts slots, cannot hold. It is an error if the 63 bits end before
// both the layout and the horizon.
func (l *Layout) endTick() (uint64, error) {
	used := l.timeBits + l.seqBits
	if used < 63 {
		return 1 << l.timeBits, nil
	}
	reversed := slices.ContainsFunc(l.pieces[:l.n], func(p piece) bool { return p.reverse })
	if used > 63 && reversed {
		return 0, fmt.Errorf("firn: layout %s cannot be generated: tick and sequence are counted in 63 bits, and a "+
			"reversed time must fit as a whole: use at most 63 bits of time and sequence", *l)
	}
	// One tick less than fits, so that no limit reaches sealedBit.
	end := uint64(1)<<(63-l.seqBits) - 1
	if t, err := l.timeOf(end); err == nil && t.Before(horizon) && t.Before(l.Last()) {
		return 0, fmt.Errorf("firn: layout %s cannot be generated: tick and sequence are counted in 63 bits, and %d "+
			"bits of sequence leave %d for ticks of %v, which end in %d",
			*l, l.seqBits, 63-l.seqBits, l.unit, t.Year())
	}
	return end, nil
}

// horizon is the time that a generator must reach unless its layout ends
// earlier: the latest one in int64 nanoseconds since 1970.
var horizon = time.Unix(0, math.MaxInt64)

// maxSeconds bounds the range of a layout's time field, about 1.1 billion
// years, so that the year fits 32 bits.
const maxSeconds = 1 << 55
