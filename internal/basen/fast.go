package basen

import (
	"encoding/binary"
	"strconv"
)

// This file handles common texts, of decimal and hexadecimal digits eight at a
// time: a digit is a byte of a 64-bit number. Other texts take the general path,
// which gives the same results; TestQuickWays compares the two.

// ones times n has n in each byte.
const ones = 0x01010101_01010101

// AppendDec appends v in decimal to b, as strconv.AppendUint does in twice the
// time.
func AppendDec(b []byte, v uint64) []byte {
	if v < 1e16 {
		return strconv.AppendUint(b, v, 10)
	}
	b = strconv.AppendUint(b, v/1e16, 10)
	b = binary.LittleEndian.AppendUint64(b, dec8(v/1e8%1e8))
	return binary.LittleEndian.AppendUint64(b, dec8(v%1e8))
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
