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
	randomPrior = 5.0  // random: all numbers of the size are equally likely
	smallPrior  = -2.0 // counters and amounts: small numbers are likelier
	clockPrior  = 2.5  // a Unix time of the last 20 years
)

// An unknownWeight is the probability of a text if no known layout made it.
type unknownWeight struct {
	weight float64
	fit    float64 // the weight, regardless of how common such texts are
	other  string  // what the text may be instead, other than a number
}

// is records one thing that the text may be, and reports whether it is the
// likeliest so far.
func (u *unknownWeight) is(fit, prior float64) bool {
	u.fit = max(u.fit, fit)
	if fit+prior <= u.weight {
		return false
	}
	u.weight = fit + prior
	return true
}

// unknown returns the weight that layouts compete with: none of them made the
// text.
func unknown(numbers []*number, now time.Time, quiet bool) unknownWeight {
	u := unknownWeight{weight: math.Inf(-1), fit: math.Inf(-1)}
	for _, n := range numbers {
		f, isFormat := n.encoding.Format()
		switch {
		case n.loose:
			u.is(-float64(n.size)-3, 0)
		case !isFormat || f != firn.Decimal:
			u.is(-float64(n.size), 0)
		case n.size != 64:
			u.is(-float64(n.size), randomPrior)
		default:
			u.number(uint64(n.id64()), now, quiet)
		}
	}
	return u
}

// number is unknown for a decimal number.
func (u *unknownWeight) number(id uint64, now time.Time, quiet bool) {
	v, bits := float64(id), 63.0
	if v >= 1<<63 {
		bits = 64
	}
	u.is(-bits, randomPrior)
	// log2 of 64 bits times the natural logarithm of 2 is 5.5.
	u.is(-math.Log2(v+1)-5.5, smallPrior)
	for _, c := range clocks {
		at := v * c.unit
		age := float64(now.Unix()) - at
		if age < -Year || age > usual {
			continue
		}
		if u.is(c.fit, clockPrior) && !quiet {
			sec, frac := math.Modf(at)
			u.other = fmt.Sprintf("it may be a Unix time in %s: %s", c.name, Stamp(time.Unix(int64(sec), int64(frac*1e9)).Truncate(time.Millisecond), time.Millisecond))
		}
	}
}

// clocks are the units of Unix times, in seconds.
var clocks = [...]struct {
	name      string
	unit, fit float64
}{
	{"seconds", 1, math.Log2(1 / usual)},
	{"milliseconds", 1e-3, math.Log2(1e-3 / usual)},
	{"microseconds", 1e-6, math.Log2(1e-6 / usual)},
	{"nanoseconds", 1e-9, math.Log2(1e-9 / usual)},
}

// appendDec appends Dec; 64-bit IDs need no big.Int.
func (r *Reading) appendDec(b []byte) []byte {
	if len(r.Bytes) == 8 {
		return strconv.AppendUint(b, binary.BigEndian.Uint64(r.Bytes), 10)
	}
	return new(big.Int).SetBytes(r.Bytes).Append(b, 10)
}
