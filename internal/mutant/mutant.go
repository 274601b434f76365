// Package mutant names deliberate mistakes in the coordination protocol. They
// exist to show that the proofs notice them: the tests of grant/sim are built
// with the tag firnmutant and switch on one mistake at a time. Without the tag
// On is false for every mistake and the compiler removes what it guards.
package mutant

// A Mutant is one deliberate mistake.
type Mutant int32

// The mistakes.
const (
	None             Mutant = iota
	StartAtClock            // a grant begins at the clock, whatever the mark says
	SealLate                // the mark of a release is read before the generator is sealed
	TimeoutIsSuccess        // an unknown result is taken for success
	BlindRenewal            // a renewal overwrites whatever the record has
	StaleMemory             // a number that is acquired again goes on in its old window
	CompareRevision         // the store compares revisions and not values
	NoFence                 // nothing is done after a restore
	FloorOnly               // a fence raises the floor and rewrites no record
	TickAtUntil             // a window's exclusive end is used
	CursorBack              // a renewal moves the next slot back to the clock
	NoConfigReread          // the configuration is not read again after an acquire
	ReleaseForeign          // a release overwrites a record that is not one's own
	SlotAcrossTerms         // a slot taken under one term is used with the node of the next
	TakeoverHeld            // a held number is taken over and begins at the clock
	RangeIgnored            // a member takes numbers outside its range
	count
)

var names = [count]string{
	"none", "start at clock", "seal late", "timeout is success", "blind renewal",
	"stale memory", "compare revision", "no fence", "floor only", "tick at until",
	"cursor back", "no config re-read", "release foreign", "slot across terms",
	"takeover held", "range ignored",
}

// String is the mistake in words.
func (m Mutant) String() string {
	if m < 0 || m >= count {
		return "unknown"
	}
	return names[m]
}

// All returns every mistake.
func All() []Mutant {
	all := make([]Mutant, 0, count-1)
	for m := None + 1; m < count; m++ {
		all = append(all, m)
	}
	return all
}
