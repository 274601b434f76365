package freshness

// A Mistake is a deliberate one in the test of what is fresh. They exist to show
// that the generator's tests notice them: with the build tag firnmutant SetMistake
// switches one on. Without it there is none, and the compiler removes what is here.
type Mistake int32

// The mistakes.
const (
	None         Mistake = iota
	AlwaysFresh          // a reading is never too old
	EndForgotten         // what is fresh has no end
	StillIsFresh         // a counter that stands still says that no time has passed
	BackIsFresh          // and one that went back says so too
	RateBelieved         // the rate of a counter is measured once
	endOfMistakes
)

// String is the mistake in words.
func (m Mistake) String() string {
	if m < 0 || m >= endOfMistakes {
		return "unknown"
	}
	return [...]string{"none", "always fresh", "end forgotten", "still is fresh", "back is fresh", "rate believed"}[m]
}

// Mistakes returns every one.
func Mistakes() []Mistake {
	var all []Mistake
	for m := None + 1; m < endOfMistakes; m++ {
		all = append(all, m)
	}
	return all
}

// mistaken is fresh with the mistakes.
func mistaken(c, stamp, span uint64) bool {
	passed := c - stamp
	switch {
	case span == 0: // shut
		return false
	case made(AlwaysFresh):
		return true
	case made(StillIsFresh):
		return passed < span
	case made(BackIsFresh):
		return int64(passed) < int64(span) && passed != 0
	}
	return passed-1 < span
}
