// Package basen formats and parses unsigned numbers of 64 and 128 bits in any
// base from 2 to 62.
//
// It handles digits and widths, but not names, prefixes or error texts: those
// are in format.go of package firn. For numbers of other sizes, or with a sign,
// use strconv or math/big.
//
// The common texts, of decimal, hexadecimal and Crockford's digits, have
// functions of their own in decimal.go, hex.go and crockford.go. Those give the
// same results as the methods of Base, in less time: TestQuickWays compares
// them.
package basen

import (
	"math/bits"
	"slices"
)

// The lowest and the highest base.
const (
	Min = 2
	Max = 62
)

// A Base is a number base with its digits. It must be made by Boundary, Hex,
// Crockford or Bitcoin; the zero Base is not valid.
type Base struct {
	radix  *radix
	digits *[64]byte
	values *[256]uint8
}

// Boundary returns base n with the alphabet 0-9A-Za-z, like Boundary's flake.
// Up to base 36 it accepts letters of either case. It panics if n is not in
// Min..Max.
func Boundary(n int) Base {
	if n < Min || n > Max {
		panic("basen: unknown base")
	}
	values := &values62
	if n <= 36 {
		values = &valuesFold
	}
	return Base{&radices[n], &digits62, values}
}

// Hex returns base 16 with lower-case letters. It accepts either case.
func Hex() Base { return Base{&radices[16], &digitsLower, &valuesFold} }

// Crockford returns Crockford's base 32. It accepts letters of either case, but
// not I and L for 1, or O for 0.
func Crockford() Base { return Base{&radices[32], &digitsCrockford, &valuesCrockford} }

// Bitcoin returns base 58 with Bitcoin's alphabet. It is case-sensitive.
func Bitcoin() Base { return Base{&radices[58], &digitsBitcoin, &valuesBitcoin} }

// Alphabet returns the digits that x writes, in order.
func (x Base) Alphabet() string { return string(x.digits[:x.radix.base]) }

// Has reports whether x accepts c as a digit.
func (x Base) Has(c byte) bool { return uint64(x.values[c]) < x.radix.base }

// Width64 returns the number of digits of the greatest 64-bit number.
func (x Base) Width64() int { return int(x.radix.w64) }

// Width128 returns the number of digits of the greatest 128-bit number.
func (x Base) Width128() int { return int(x.radix.w128) }

// Append64 appends the digits of v to b: Width64 of them if pad is set, and
// otherwise as many as v needs, but at least one.
func (x Base) Append64(b []byte, v uint64, pad bool) []byte {
	w := x.Width64()
	if pad {
		n := len(b)
		b = slices.Grow(b, w)[:n+w]
		x.write64(b[n:], v)
		return b
	}
	// Not in the spare capacity of b: like append, this must not touch anything
	// beyond the bytes that it returns.
	var buf [64]byte
	d := buf[:w]
	x.write64(d, v)
	return append(b, x.trim(d)...)
}

// Append128 appends the digits of hi<<64 | lo to b, as Append64 does.
func (x Base) Append128(b []byte, hi, lo uint64, pad bool) []byte {
	w := x.Width128()
	if pad {
		n := len(b)
		b = slices.Grow(b, w)[:n+w]
		x.write128(b[n:], hi, lo)
		return b
	}
	var buf [128]byte
	d := buf[:w]
	x.write128(d, hi, lo)
	return append(b, x.trim(d)...)
}

// trim returns d without its leading zeros, but with its last digit.
func (x Base) trim(d []byte) []byte {
	zero := x.digits[0]
	for len(d) > 1 && d[0] == zero {
		d = d[1:]
	}
	return d
}

// write64 fills d, which has Width64 bytes, with the digits of v.
func (x Base) write64(d []byte, v uint64) {
	r := x.radix
	if r.shift != 0 {
		x.writeShift(d, 0, v)
		return
	}
	// recip is rounded down, so q is the quotient or one less.
	q, _ := bits.Mul64(v, r.recip)
	v -= q * r.pair
	if v >= r.pair {
		v -= r.pair
		q++
	}
	top := len(d) - 2*int(r.digits)
	x.writeSmall(d[:top], q)
	x.writePair(d[top:], v)
}

// write128 fills d, which has Width128 bytes, with the digits of hi<<64 | lo.
func (x Base) write128(d []byte, hi, lo uint64) {
	r := x.radix
	if r.shift != 0 {
		x.writeShift(d, hi, lo)
		return
	}
	// Two long divisions leave a top of at most 2^24: pair is above 2^52.
	qhi := hi / r.pair
	qlo, low := bits.Div64(hi%r.pair, lo, r.pair)
	q, mid := bits.Div64(qhi, qlo, r.pair)
	two := 2 * int(r.digits)
	top := len(d) - 2*two
	x.writeSmall(d[:top], q)
	x.writePair(d[top:top+two], mid)
	x.writePair(d[top+two:], low)
}

// writeShift fills d with the digits of hi<<64 | lo in a base that is a power
// of two.
func (x Base) writeShift(d []byte, hi, lo uint64) {
	s, mask := x.radix.shift&7, x.radix.base-1
	for i := len(d) - 1; i >= 0; i-- {
		d[i] = x.digits[lo&mask&63]
		lo = lo>>s | hi<<(64-s)
		hi >>= s
	}
}

// writeSmall fills d with the digits of v, with one division for each but the
// first.
func (x Base) writeSmall(d []byte, v uint64) {
	n := uint32(x.radix.base)
	w := uint32(v)
	for i := len(d) - 1; i > 0; i-- {
		d[i] = x.digits[w%n&63]
		w /= n
	}
	d[0] = x.digits[w&63]
}

// writePair fills d, which has two chunks of k digits, with the digits of v <
// pair.
//
// A chunk c is converted to a fraction c/n^k of 2^64, rounded up; each
// multiplication by n then pushes the next digit out at the top. The rounding
// error is less than c <= n^k units and grows by n with each of the k digits.
// It stays below the n^-k of 2^64 that would change a digit, because n^k*n^k <=
// 2^64.
func (x Base) writePair(d []byte, v uint64) {
	r := x.radix
	h, _ := bits.Mul64(v, r.frac-1) // the quotient or one less, as in write64
	l := v - h*r.chunk
	if l >= r.chunk {
		l -= r.chunk
		h++
	}
	h *= r.frac
	l *= r.frac
	n, k := r.base, int(r.digits)
	// Two chains of multiplications, so that neither waits for the other.
	dh, dl := d[:k], d[k:2*k]
	for i := range dh {
		var a, b uint64
		a, h = bits.Mul64(h, n)
		b, l = bits.Mul64(l, n)
		dh[i] = x.digits[a&63]
		dl[i] = x.digits[b&63]
	}
}

// Parse64 parses a number of 1 to Width64 digits. It reports false if s is
// empty, longer, or contains another character, or if the number needs more
// than 64 bits.
func (x Base) Parse64(s []byte) (v uint64, ok bool) {
	r := x.radix
	if len(s) == 0 || len(s) > int(r.w64) {
		return 0, false
	}
	if r.w64 == 11 && len(s) >= 10 {
		v, ok = x.parse10((*[10]byte)(s[len(s)-10:]))
		if !ok || len(s) == 10 {
			return v, ok
		}
		d := uint64(x.values[s[0]])
		over, top := bits.Mul64(d, r.pair)
		v, carry := bits.Add64(v, top, 0)
		if d >= r.base || over|carry != 0 {
			return 0, false
		}
		return v, true
	}
	for {
		// The digits of a chunk do not depend on the previous chunk.
		m := (len(s)-1)%int(r.digits) + 1
		c := uint64(0)
		for _, ch := range s[:m] {
			d := uint64(x.values[ch])
			if d >= r.base {
				return 0, false
			}
			c = c*r.base + d
		}
		over, low := bits.Mul64(v, r.chunk)
		sum, carry := bits.Add64(low, c, 0)
		if over|carry != 0 {
			return 0, false
		}
		v = sum
		if s = s[m:]; len(s) == 0 {
			return v, true
		}
	}
}

// Parse128 parses a number of 1 to Width128 digits, as Parse64 does.
func (x Base) Parse128(s []byte) (hi, lo uint64, ok bool) {
	r := x.radix
	if len(s) == 0 || len(s) > int(r.w128) {
		return 0, 0, false
	}
	for {
		m := (len(s)-1)%int(r.digits) + 1
		c := uint64(0)
		for _, ch := range s[:m] {
			d := uint64(x.values[ch])
			if d >= r.base {
				return 0, 0, false
			}
			c = c*r.base + d
		}
		mid, low := bits.Mul64(lo, r.chunk)
		over, high := bits.Mul64(hi, r.chunk)
		low, carry := bits.Add64(low, c, 0)
		high, carry = bits.Add64(high, mid, carry)
		if over|carry != 0 {
			return 0, 0, false
		}
		hi, lo = high, low
		if s = s[m:]; len(s) == 0 {
			return hi, lo, true
		}
	}
}

// parse10 parses ten digits of a base from 57 to 62. A character that is not a
// digit has the value 255; in bases 57 to 61, a smaller value may also be too
// large.
func (x Base) parse10(s *[10]byte) (v uint64, ok bool) {
	a, n := x.values, x.radix.base
	d0, d1, d2, d3, d4 := a[s[0]], a[s[1]], a[s[2]], a[s[3]], a[s[4]]
	d5, d6, d7, d8, d9 := a[s[5]], a[s[6]], a[s[7]], a[s[8]], a[s[9]]
	if max(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) >= uint8(n) {
		return 0, false
	}
	n2 := n * n
	n4 := n2 * n2
	p0, p1 := uint64(d0)*n+uint64(d1), uint64(d2)*n+uint64(d3)
	p2, p3 := uint64(d4)*n+uint64(d5), uint64(d6)*n+uint64(d7)
	p4 := uint64(d8)*n + uint64(d9)
	// 62^10 is less than 2^60.
	return (p0*n4+p1*n2+p2)*n4 + p3*n2 + p4, true
}
