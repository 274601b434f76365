package basen

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
)

// This file handles the most common texts, eight digits at a time: a digit is a
// byte of a 64-bit number. Other texts take the general path, which gives the
// same results; TestQuickWays compares the two.

// ones times n has n in each byte.
const ones = 0x01010101_01010101

// AppendDec appends v in decimal to b, without leading zeros.
func AppendDec(b []byte, v uint64) []byte {
	const e8, e16 = 1e8, 1e16
	if v < e16 {
		return strconv.AppendUint(b, v, 10)
	}
	top, low := v/e16, v%e16 // top has one to four digits
	n := len(b)
	b = slices.Grow(b, 20)[:n+20]
	d := b[n : n+20]
	t := 1
	switch {
	case top >= 1000:
		t = 4
		d[0], d[1] = '0'+byte(top/1000), '0'+byte(top/100%10)
		d[2], d[3] = '0'+byte(top/10%10), '0'+byte(top%10)
	case top >= 100:
		t = 3
		d[0], d[1], d[2] = '0'+byte(top/100), '0'+byte(top/10%10), '0'+byte(top%10)
	case top >= 10:
		t = 2
		d[0], d[1] = '0'+byte(top/10), '0'+byte(top%10)
	default:
		d[0] = '0' + byte(top)
	}
	d = d[t : t+16]
	binary.LittleEndian.PutUint64(d, dec8(low/e8))
	binary.LittleEndian.PutUint64(d[8:], dec8(low%e8))
	return b[:n+t+16]
}

// dec8 returns the eight decimal digits of v < 10^8, the first in the lowest
// byte.
func dec8(v uint64) uint64 {
	// Four digits per half, two per quarter, one per byte. The reciprocals are
	// exact for the numbers that they divide.
	h := v / 10000
	x := h | (v-h*10000)<<32
	q := x * 10486 >> 20 & 0x7f_0000007f
	x = q | (x-q*100)<<16
	q = x * 103 >> 10 & 0x000f_000f_000f_000f
	x = q | (x-q*10)<<8
	return x + '0'*ones
}

// ParseDec parses a decimal number of 1 to 20 digits, as Base.Parse64 does.
func ParseDec(s []byte) (v uint64, ok bool) {
	if len(s) < 16 || len(s) > 20 {
		return Boundary(10).Parse64(s)
	}
	top, s := s[:len(s)-16], s[len(s)-16:]
	mid, ok1 := parseDec8(binary.LittleEndian.Uint64(s))
	low, ok2 := parseDec8(binary.LittleEndian.Uint64(s[8:]))
	for _, c := range top {
		if c -= '0'; c > 9 {
			return 0, false
		}
		v = v*10 + uint64(c)
	}
	over, high := bits.Mul64(v, 1e16)
	v, carry := bits.Add64(high, mid*1e8+low, 0)
	if !ok1 || !ok2 || over|carry != 0 {
		return 0, false
	}
	return v, true
}

// parseDec8 parses eight decimal digits, the first in the lowest byte.
func parseDec8(x uint64) (v uint64, ok bool) {
	d := x ^ '0'*ones
	// A valid digit is 0 to 9 now. Anything else exceeds 15 after adding 6, or
	// already had its upper half set.
	if (d+6*ones|d)&(0xf0*ones) != 0 {
		return 0, false
	}
	d = d*10 + d>>8 // each second byte is a pair
	const pair = 0x000000ff_000000ff
	return (d&pair*(100+1e6<<32) + d>>16&pair*(1+1e4<<32)) >> 32, true
}

// parse10 parses ten digits of a base from 57 to 62. A character that is not a
// digit has the value 255; in bases 57 to 61, a smaller value may also be too
// large.
func (x Base) parse10(s *[10]byte) (v uint64, ok bool) {
	a, n := x.values, x.radix.n
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

// ParseHex64 parses exactly 16 hexadecimal digits of either case.
func ParseHex64(s []byte) (v uint64, ok bool) {
	if len(s) != 16 {
		return 0, false
	}
	hi, ok1 := parseHex8(binary.BigEndian.Uint64(s))
	lo, ok2 := parseHex8(binary.BigEndian.Uint64(s[8:]))
	return hi<<32 | lo, ok1 && ok2
}

// ParseUUID parses the form 8-4-4-4-12, with letters of either case. It reports
// false for any other form.
func ParseUUID(s []byte) (hi, lo uint64, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return 0, 0, false
	}
	be := binary.BigEndian
	a, ok1 := parseHex8(be.Uint64(s))
	b, ok2 := parseHex8(uint64(be.Uint32(s[9:]))<<32 | uint64(be.Uint32(s[14:])))
	c, ok3 := parseHex8(uint64(be.Uint32(s[19:]))<<32 | uint64(be.Uint32(s[24:])))
	d, ok4 := parseHex8(be.Uint64(s[28:]))
	if !(ok1 && ok2 && ok3 && ok4) {
		return 0, 0, false
	}
	return a<<32 | b, c<<32 | d, true
}

// parseHex8 parses eight hexadecimal digits, the first in the topmost byte.
func parseHex8(x uint64) (v uint64, ok bool) {
	// Letters have the bit 64 set, and their lowest four bits are 1 to 6.
	letters := x >> 6 & ones
	v = x&(0x0f*ones) + letters*9
	// The digits are valid if formatting the result gives the same text, up to
	// the case of letters.
	above9 := (v + 6*ones) >> 4 & ones
	if v&(0xf0*ones) != 0 || v+'0'*ones+above9*('a'-'0'-10) != x|letters<<5 {
		return 0, false
	}
	v = (v | v>>4) & 0x00ff00ff_00ff00ff
	v = (v | v>>8) & 0x0000ffff_0000ffff
	return (v | v>>16) & 0xffffffff, true
}

// ParseCrockford64 parses 13 digits in Crockford's base 32, as Parse64 does,
// but rejects any other number of digits.
func ParseCrockford64(s []byte) (v uint64, ok bool) {
	if len(s) != 13 {
		return 0, false
	}
	a := &valuesCrockford
	d0, d1, d2, d3, d4, d5, d6 := a[s[0]], a[s[1]], a[s[2]], a[s[3]], a[s[4]], a[s[5]], a[s[6]]
	d7, d8, d9, d10, d11, d12 := a[s[7]], a[s[8]], a[s[9]], a[s[10]], a[s[11]], a[s[12]]
	// The first digit has four bits; invalid characters have all eight set.
	if d0 > 15 || (d1|d2|d3|d4|d5|d6|d7|d8|d9|d10|d11|d12) > 31 {
		return 0, false
	}
	return uint64(d0)<<60 | uint64(d1)<<55 | uint64(d2)<<50 | uint64(d3)<<45 | uint64(d4)<<40 |
		uint64(d5)<<35 | uint64(d6)<<30 | uint64(d7)<<25 | uint64(d8)<<20 | uint64(d9)<<15 |
		uint64(d10)<<10 | uint64(d11)<<5 | uint64(d12), true
}

// ParseCrockford128 parses 26 digits in Crockford's base 32, as Parse128 does,
// but rejects any other number of digits.
func ParseCrockford128(s []byte) (hi, lo uint64, ok bool) {
	if len(s) != 26 {
		return 0, 0, false
	}
	a := &valuesCrockford
	top := a[s[0]] // three bits
	h, ok1 := parse12((*[12]byte)(s[1:]))
	mid := a[s[13]]
	l, ok2 := parse12((*[12]byte)(s[14:]))
	if top > 7 || mid > 31 || !ok1 || !ok2 {
		return 0, 0, false
	}
	return uint64(top)<<61 | h<<1 | uint64(mid)>>4, uint64(mid)<<60 | l, true
}

// parse12 parses 12 digits in Crockford's base 32.
func parse12(s *[12]byte) (v uint64, ok bool) {
	a := &valuesCrockford
	d0, d1, d2, d3, d4, d5 := a[s[0]], a[s[1]], a[s[2]], a[s[3]], a[s[4]], a[s[5]]
	d6, d7, d8, d9, d10, d11 := a[s[6]], a[s[7]], a[s[8]], a[s[9]], a[s[10]], a[s[11]]
	if d0|d1|d2|d3|d4|d5|d6|d7|d8|d9|d10|d11 > 31 { // invalid characters have all eight bits set
		return 0, false
	}
	return uint64(d0)<<55 | uint64(d1)<<50 | uint64(d2)<<45 | uint64(d3)<<40 | uint64(d4)<<35 |
		uint64(d5)<<30 | uint64(d6)<<25 | uint64(d7)<<20 | uint64(d8)<<15 | uint64(d9)<<10 |
		uint64(d10)<<5 | uint64(d11), true
}
