package firn

import (
	"fmt"
	"math/big"
)

// Format implements fmt.Formatter: %d, %b, %o, %O, %x and %X print the number,
// with the flags of integers; %v, %s and %q print the text of String.
func (id ID) Format(f fmt.State, verb rune) {
	var v any = id.String()
	if isNumber(f, verb) {
		v = uint64(id)
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), v)
}

// Format implements fmt.Formatter: %d, %b, %o, %O, %x and %X print the number,
// with the flags of integers; %v, %s and %q print the text of String.
func (id ID128) Format(f fmt.State, verb rune) {
	var v any = id.String()
	switch {
	case verb == 'v' && f.Flag('#'):
		v = [16]byte(id)
	case isNumber(f, verb):
		v = new(big.Int).SetBytes(id[:])
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), v)
}

// isNumber reports whether a verb prints the number instead of the text.
func isNumber(f fmt.State, verb rune) bool {
	switch verb {
	case 'd', 'b', 'o', 'O', 'x', 'X':
		return true
	case 'v':
		return f.Flag('#') // as a number in Go syntax
	}
	return false
}
