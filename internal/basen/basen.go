// Package basen formats and parses unsigned numbers of 64 and 128 bits in any
// base from 2 to 62.
//
// It handles digits and widths, but not names, prefixes or error texts: those
// are in format.go of package firn. For numbers of other sizes, or with a
// sign, use strconv or math/big.
package basen

import (
	"encoding/binary"
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

// AppendHex64 appends the 16 lower-case hexadecimal digits of v to b.
func AppendHex64(b []byte, v uint64) []byte {
	b = binary.BigEndian.AppendUint64(b, hexDigits(uint32(v>>32)))
	return binary.BigEndian.AppendUint64(b, hexDigits(uint32(v)))
}

// hexDigits returns the eight lower-case hexadecimal digits of v as the bytes
// of a number, the first on top.
func hexDigits(v uint32) uint64 {
	// One nibble per byte.
	x := uint64(v)
	x = (x | x<<16) & 0x0000ffff_0000ffff
	x = (x | x<<8) & 0x00ff00ff_00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f_0f0f0f0f
	// 10 + 6 is the first value that carries into the next four bits.
	letters := (x + 0x06060606_06060606) >> 4 & 0x01010101_01010101
	return x + 0x30303030_30303030 + letters*('a'-'0'-10)
}

// AppendUUID appends hi<<64 | lo to b in the form 8-4-4-4-12.
func AppendUUID(b []byte, hi, lo uint64) []byte {
	n := len(b)
	b = slices.Grow(b, 36)[:n+36]
	d := b[n:]
	be := binary.BigEndian
	h := hexDigits(uint32(hi))
	l := hexDigits(uint32(lo >> 32))
	be.PutUint64(d[0:], hexDigits(uint32(hi>>32)))
	d[8] = '-'
	be.PutUint32(d[9:], uint32(h>>32))
	d[13] = '-'
	be.PutUint32(d[14:], uint32(h))
	d[18] = '-'
	be.PutUint32(d[19:], uint32(l>>32))
	d[23] = '-'
	be.PutUint32(d[24:], uint32(l))
	be.PutUint64(d[28:], hexDigits(uint32(lo)))
	return b
}

// AppendCrockford64 appends the 13 digits of v in Crockford's base 32 to b.
func AppendCrockford64(b []byte, v uint64) []byte {
	return append12(append(b, digitsCrockford[v>>60]), v)
}

// AppendCrockford128 appends the 26 digits of hi<<64 | lo in Crockford's base
// 32 to b, like a ULID.
func AppendCrockford128(b []byte, hi, lo uint64) []byte {
	b = append12(append(b, digitsCrockford[hi>>61]), hi>>1)
	return append12(append(b, digitsCrockford[(hi<<4|lo>>60)&31]), lo)
}

// append12 appends the 12 digits of the lowest 60 bits of v in Crockford's base
// 32.
func append12(b []byte, v uint64) []byte {
	a := &digitsCrockford
	return append(b,
		a[v>>55&31], a[v>>50&31], a[v>>45&31], a[v>>40&31], a[v>>35&31], a[v>>30&31],
		a[v>>25&31], a[v>>20&31], a[v>>15&31], a[v>>10&31], a[v>>5&31], a[v&31])
}
