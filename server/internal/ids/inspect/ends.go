package inspect

import (
	"math"
	"time"

	"github.com/firnid/firn"
)

// Ends are the lowest and the highest ID of a time range, as text.
type Ends struct {
	Lo, Hi string
	Big    bool // Hi does not fit a signed number of 64 bits
}

// EndsOf returns the ends of a time range, in a format that fits the layout.
// The error is that of Layout.Range.
func EndsOf(l firn.Layout, from, to time.Time, f Appender) (Ends, error) {
	if l.Bits() == 128 {
		lo, hi, err := l.Range128(from, to)
		top, low := hi.Uint64s()
		return Ends{string(f.Append128(nil, lo)), string(f.Append128(nil, hi)), top > 0 || low > math.MaxInt64}, err
	}
	lo, hi, err := l.Range(from, to)
	return Ends{string(f.Append(nil, lo)), string(f.Append(nil, hi)), hi > math.MaxInt64}, err
}
