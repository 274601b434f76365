package firn

import "math/bits"

// A wide is a 128-bit unsigned number, in which layouts assemble IDs of any
// size.
type wide struct{ hi, lo uint64 }

func (w wide) or(v wide) wide  { return wide{w.hi | v.hi, w.lo | v.lo} }
func (w wide) and(v wide) wide { return wide{w.hi & v.hi, w.lo & v.lo} }
func (w wide) isZero() bool    { return w.hi|w.lo == 0 }

// shl shifts left. Go's shifts by 64 and more give 0, as is needed here.
func (w wide) shl(n uint8) wide {
	return wide{w.hi<<n | w.lo<<(n-64) | w.lo>>(64-n), w.lo << n}
}

func (w wide) shr(n uint8) wide {
	return wide{w.hi >> n, w.lo>>n | w.hi<<(64-n) | w.hi>>(n-64)}
}

func (w wide) plus(n uint64) wide {
	lo, carry := bits.Add64(w.lo, n, 0)
	return wide{w.hi + carry, lo}
}

// ones returns the number whose n lowest bits are set, n ≤ 128.
func ones(n uint8) wide {
	if n <= 64 {
		return wide{0, mask(n)}
	}
	return wide{mask(n - 64), ^uint64(0)}
}

// mask returns the number whose n lowest bits are set, n ≤ 64.
func mask(n uint8) uint64 { return 1<<n - 1 }

// reverse reverses the n lowest bits of v, 1 ≤ n ≤ 64.
func reverse(v uint64, n uint8) uint64 { return bits.Reverse64(v) >> (64 - n) }
