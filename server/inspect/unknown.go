package inspect

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/firnid/firn"
)

// Numbers that no known layout has made: how common they are among the texts
// that people look up, on the scale of a judge.
const (
	randomPrior = 2.8  // random: all numbers of the size are equally likely
	smallPrior  = -3.0 // counters and amounts: small numbers are likelier
	clockPrior  = 1.0  // a Unix time of the last 20 years
)

// unknown returns the weight that layouts compete with: none of them made the
// text. other says what it may be instead, if that is more than a number.
func unknown(numbers []*number, now time.Time, quiet bool) (weight float64, other string) {
	weight = math.Inf(-1)
	for _, n := range numbers {
		f, isFormat := n.encoding.Format()
		if !isFormat || f != firn.Decimal {
			w := -float64(n.size)
			if n.loose {
				w -= 3
			}
			weight = max(weight, w)
			continue
		}
		if n.size != 64 {
			weight = max(weight, -float64(n.size)+randomPrior)
			continue
		}
		v := float64(uint64(n.id64()))
		bits := 63.0
		if v >= 1<<63 {
			bits = 64
		}
		// log2 of 64 bits times the natural logarithm of 2 is 5.5.
		w := max(randomPrior-bits, smallPrior-math.Log2(v+1)-5.5)
		for _, u := range []struct {
			name string
			unit float64 // in seconds
		}{{"seconds", 1}, {"milliseconds", 1e-3}, {"microseconds", 1e-6}, {"nanoseconds", 1e-9}} {
			at := v * u.unit
			age := float64(now.Unix()) - at
			if age < -Year || age > usual {
				continue
			}
			if c := clockPrior + math.Log2(u.unit/usual); c > w {
				w = c
				if !quiet {
					sec, frac := math.Modf(at)
					other = fmt.Sprintf("it may be a Unix time in %s: %s", u.name, Stamp(time.Unix(int64(sec), int64(frac*1e9)).Truncate(time.Millisecond), time.Millisecond))
				}
			}
		}
		weight = max(weight, w)
	}
	return weight, other
}

// appendDec appends Dec; 64-bit IDs need no big.Int.
func (r *Reading) appendDec(b []byte) []byte {
	if len(r.Bytes) == 8 {
		return strconv.AppendUint(b, binary.BigEndian.Uint64(r.Bytes), 10)
	}
	return new(big.Int).SetBytes(r.Bytes).Append(b, 10)
}
