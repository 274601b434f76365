package inspect

import (
	"fmt"
	"math"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
)

// Numbers that no known layout has made: how common they are among the texts
// that people look up, on the scale of the weights.
const (
	randomPrior = 5.0  // random: all numbers of the size are equally likely
	smallPrior  = -2.0 // counters and amounts: small numbers are likelier
	clockPrior  = 2.5  // a Unix time of the last 20 years
)

// A noLayout is the reading that competes with all layouts: none of them made
// the text.
type noLayout struct {
	weight float64
	fit    float64 // the weight, regardless of how common such texts are
	other  string  // what the text may be instead, other than a number
}

// consider records one thing that the text may be, and reports whether it is the
// likeliest so far.
func (u *noLayout) consider(fit, prior float64) bool {
	u.fit = max(u.fit, fit)
	likelier := fit+prior > u.weight
	u.weight = max(u.weight, fit+prior)
	return likelier
}

// judgeNoLayout judges the readings of one text.
func judgeNoLayout(decodings []*form.Decoding, now time.Time) noLayout {
	u := noLayout{weight: math.Inf(-1), fit: math.Inf(-1)}
	for _, n := range decodings {
		bits := float64(n.Bits())
		switch {
		case n.Ambiguous:
			u.consider(-bits-3, 0)
		case n.Form != form.Of(firn.Decimal):
			u.consider(-bits, 0)
		case bits != 64:
			u.consider(-bits, randomPrior)
		default:
			u.number(n.Uint64(), now)
		}
	}
	return u
}

// number judges a decimal number.
func (u *noLayout) number(id uint64, now time.Time) {
	v, bits := float64(id), 63.0
	if v >= 1<<63 {
		bits = 64
	}
	u.consider(-bits, randomPrior)
	// log2 of 64 bits times the natural logarithm of 2 is 5.5.
	u.consider(-math.Log2(v+1)-5.5, smallPrior)
	for _, unit := range []struct {
		name    string
		seconds float64
	}{{"seconds", 1}, {"milliseconds", 1e-3}, {"microseconds", 1e-6}, {"nanoseconds", 1e-9}} {
		at := v * unit.seconds
		age := float64(now.Unix()) - at
		if age >= -Year && age <= usualAge && u.consider(math.Log2(unit.seconds/usualAge), clockPrior) {
			u.other = fmt.Sprintf("it may be a Unix time in %s: %s", unit.name, Stamp(time.UnixMilli(int64(at*1e3)), time.Millisecond))
		}
	}
}
