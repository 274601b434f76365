package inspect

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
)

// Kinds of numbers that no known layout has made. A column is of one kind.
const (
	kindRandom = iota // all numbers of the size are equally likely
	kindSmall         // counters and amounts: small numbers are likelier
	kindClock         // a Unix time of the last 20 years, in the first of units, …
	kinds      = kindClock + len(units)
)

var units = [...]struct {
	name    string
	seconds float64
}{{"seconds", 1}, {"milliseconds", 1e-3}, {"microseconds", 1e-6}, {"nanoseconds", 1e-9}}

// kindPriors says how common each kind is among the texts that people look up,
// on the scale of the weights.
var kindPriors = [kinds]float64{5, -2, 2.5, 2.5, 2.5, 2.5}

// A noLayout is the reading that competes with all layouts: none of them made
// the text.
type noLayout struct {
	weight float64
	fits   [kinds]float64 // the weight of each kind, regardless of how common it is
	other  string         // what the text may be instead, other than a number
}

// consider records one kind that the text may be, and reports whether it is the
// likeliest so far.
func (u *noLayout) consider(kind int, fit, prior float64) bool {
	u.fits[kind] = max(u.fits[kind], fit)
	likelier := fit+prior > u.weight
	u.weight = max(u.weight, fit+prior)
	return likelier
}

// judgeNoLayout judges the readings of one text.
func judgeNoLayout(decodings []*form.Decoding, now time.Time) noLayout {
	u := noLayout{weight: math.Inf(-1)}
	for kind := range u.fits {
		u.fits[kind] = math.Inf(-1)
	}
	for _, n := range decodings {
		bits := float64(n.Bits())
		switch {
		case n.Ambiguous:
			u.consider(kindRandom, -min(bits, letterBits(n.Text))-3, 0)
		case n.Form != form.Of(firn.Decimal):
			u.consider(kindRandom, -bits, 0)
		case bits != 64:
			u.consider(kindRandom, -bits, kindPriors[kindRandom])
		default:
			u.number(n.Uint64(), now)
		}
	}
	return u
}

// letterBits returns the bits of a text that consists of letters; infinitely
// many of any other. Encoded numbers of so many letters mostly have a digit.
func letterBits(text string) float64 {
	letters := 26.0
	if text != strings.ToLower(text) && text != strings.ToUpper(text) {
		letters *= 2
	}
	if strings.ContainsAny(text, "0123456789") {
		return math.Inf(1)
	}
	return float64(len(text)) * math.Log2(letters)
}

// number judges a decimal number.
func (u *noLayout) number(id uint64, now time.Time) {
	v, bits := float64(id), 63.0
	if v >= 1<<63 {
		bits = 64
	}
	u.consider(kindRandom, -bits, kindPriors[kindRandom])
	// log2 of 64 bits times the natural logarithm of 2 is 5.5.
	u.consider(kindSmall, -math.Log2(v+1)-5.5, kindPriors[kindSmall])
	for i, unit := range units {
		at := v * unit.seconds
		age := float64(now.Unix()) - at
		kind, fit := kindClock+i, math.Log2(unit.seconds/usualAge)
		if age >= -Year && age <= usualAge && u.consider(kind, fit, kindPriors[kind]) {
			u.other = fmt.Sprintf("it may be a Unix time in %s: %s", unit.name,
				Stamp(time.UnixMilli(int64(at*1e3)), time.Millisecond))
		}
	}
}
