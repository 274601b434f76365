package basen

import (
	"math"
	"strings"
)

// The tables are computed when the program starts.

// A radix holds the constants for arithmetic in a base.
type radix struct {
	base   uint64 // the base itself
	shift  uint8  // log2(n) if n is a power of two, otherwise 0
	digits uint8  // digits in a chunk: the maximum with n^k <= 2^32
	w64    uint8  // digits of 2^64-1
	w128   uint8  // digits of 2^128-1
	chunk  uint64 // n^k
	frac   uint64 // ceil(2^64 / chunk)
	pair   uint64 // chunk^2 if n is not a power of two
	recip  uint64 // floor(2^64 / pair) if n is not a power of two
}

// radices has the row of base n at index n. Bases 0 and 1 do not exist. The
// length of the table is a power of two, so that an index can be masked.
var radices = func() (all [64]radix) {
	for n := Min; n <= Max; n++ {
		all[n] = radixOf(uint64(n))
	}
	return all
}()

// radixOf computes the constants of base n. No 64/log2(n) is so close to an
// integer that its rounding matters.
func radixOf(n uint64) radix {
	digit := math.Log2(float64(n)) // its bits
	r := radix{base: n, w64: uint8(math.Ceil(64 / digit)), w128: uint8(math.Ceil(128 / digit)), chunk: 1}
	for r.chunk*n <= 1<<32 {
		r.chunk *= n
		r.digits++
	}
	r.frac = math.MaxUint64/r.chunk + 1
	if n&(n-1) == 0 {
		r.shift = uint8(digit)
	} else {
		r.pair = r.chunk * r.chunk
		r.recip = math.MaxUint64 / r.pair
	}
	return r
}

// The alphabets, all in ASCII order: Boundary's flake; Crockford's, without I,
// L, O and U (https://www.crockford.com/base32.html); and Bitcoin's, without 0,
// I, O and l (its src/base58.cpp).
const (
	alphabet62        = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	alphabetCrockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	alphabetBitcoin   = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
)

// The digits of values. The length of these tables, too, is a power of two.
var (
	digits62        = digitsOf(alphabet62)
	digitsLower     = digitsOf("0123456789abcdef")
	digitsCrockford = digitsOf(alphabetCrockford)
	digitsBitcoin   = digitsOf(alphabetBitcoin)
)

func digitsOf(alphabet string) (digits [64]byte) {
	copy(digits[:], alphabet)
	return digits
}

const no = 0xff // not a digit

// The values of digits. Bases up to 36 accept letters of either case.
var (
	values62        = valuesOf(alphabet62)
	valuesFold      = valuesOf(alphabet62[:36], strings.ToLower(alphabet62[:36]))
	valuesCrockford = valuesOf(alphabetCrockford, strings.ToLower(alphabetCrockford))
	valuesBitcoin   = valuesOf(alphabetBitcoin)
)

// valuesOf returns the value of each character, by one or more spellings of an
// alphabet.
func valuesOf(spellings ...string) (values [256]uint8) {
	for c := range values {
		values[c] = no
	}
	for _, alphabet := range spellings {
		for value, c := range []byte(alphabet) {
			values[c] = uint8(value)
		}
	}
	return values
}
