package basen

import (
	"encoding/binary"
	"slices"
)

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

// ones times n has n in each byte. Eight digits are handled at a time, each as
// a byte of a 64-bit number.
const ones = 0x01010101_01010101

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
