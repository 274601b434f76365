package basen

import (
	"encoding/binary"
	"strconv"
)

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
