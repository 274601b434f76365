// Package mutant names deliberate mistakes in the coordination protocol and in
// internal/freshness. They show that the tests and the simulator detect such
// mistakes: the tests of grant and of the generator are built with the tag
// firnmutant and enable one mistake at a time. Without the tag, On is false for
// every mistake, and the compiler removes the code that it guards.
package mutant

// A Mutant is one deliberate mistake.
type Mutant int32

// The mistakes.
const (
	None              Mutant = iota
	StartAtClock             // a grant begins at the clock, whatever the mark
	SealLate                 // the mark of a release is read before the generator is sealed
	TimeoutIsSuccess         // an unknown result is taken for success
	BlindRenewal             // a renewal overwrites the record, whatever it holds
	StaleMemory              // a node ID that is acquired again is used in its old window
	CompareRevision          // the store compares revisions instead of values
	NoFence                  // nothing is done after a restore
	FloorOnly                // a fence raises the floor and rewrites no record
	TickAtUntil              // a window's exclusive end is used
	CursorBack               // a renewal moves the next slot back to the clock
	NoConfigReread           // the configuration is not read again after an acquire
	ReleaseForeign           // a release overwrites a record of another member
	SlotAcrossTerms          // a slot taken under one term is used with the node ID of the next
	TakeoverHeld             // a held node ID is taken over and begins at the clock
	RangeIgnored             // a member takes node IDs outside its range
	AdoptOnRead              // an attempt that a read shows is adopted without another write
	MarkUncapped             // a renewal raises the mark however far ahead of the clock
	FenceShortWindow         // a fence knows only the window of the configuration it finds
	FenceLowersMark          // a fence lowers a mark that is above its floor
	ZeroIsNoTime             // Unix time 0 stands for the absence of a time
	DropToClock              // a claim that is dropped returns to the clock, not to its from
	RoundDown                // times with a fraction of a millisecond are rounded down
	RecheckState             // the check after a claim compares the state, not the bytes
	ShrunkRecord             // a record that shrank does not freeze its member
	SealAsync                // the Keeper answers before the generator is sealed
	GapCrossed               // a window crosses a gap that was repaired
	LineageIgnored           // a store whose identity cannot be read is used
	ClaimAhead               // a claim ignores that the clock is ahead of the store's time
	CursorKeepsBlock         // a cursor keeps its block after it waited in the line
	FenceUnheard             // a window that ends above the floor of a fence is used on
	OwnerUnchecked           // IDs of another server are passed on without a look at their owner in the store
	RevisionOnRead           // a store's revision that a read has shown must never fall
	FreezeUnsealed           // a member freezes on another's window and does not seal its own
	FromRenewed              // a renewal writes its own time as the beginning of the grant
	WallForFrom              // another's clock, not the beginning of its grant, shows a takeover
	OverlapAsTakeover        // another's window that overlaps is taken for a takeover
	ofProtocol               // the mistakes above are in the protocol

	AlwaysFresh  // a reading of the clock is never too old
	EndForgotten // a fresh window has no end
	StillIsFresh // a counter that stands still means that no time has passed
	BackIsFresh  // a counter that went back means that no time has passed
	RateBelieved // the rate of a counter is measured only once
	count
)

var names = [count]string{
	"none", "start at clock", "seal late", "timeout is success", "blind renewal",
	"stale memory", "compare revision", "no fence", "floor only", "tick at until",
	"cursor back", "no config re-read", "release foreign", "slot across terms",
	"takeover held", "range ignored",
	"adopt on read", "mark uncapped", "fence short window", "fence lowers mark", "zero means no time",
	"drop to clock", "round down", "recheck state", "shrunk record", "seal async",
	"gap crossed", "lineage ignored", "claim ahead", "cursor keeps block", "fence unheard", "owner unchecked",
	"revision on read", "freeze unsealed", "from renewed", "wall for from", "overlap as takeover",
	"", "always fresh", "end forgotten", "still is fresh", "back is fresh", "rate believed",
}

// String returns the mistake in words.
func (m Mutant) String() string {
	if m < 0 || m >= count {
		return "unknown"
	}
	return names[m]
}

// All returns every mistake in the protocol.
func All() []Mutant { return between(None, ofProtocol) }

// Fresh returns every mistake in the test whether a reading of the clock is
// fresh.
func Fresh() []Mutant { return between(ofProtocol, count) }

func between(after, before Mutant) (all []Mutant) {
	for m := after + 1; m < before; m++ {
		all = append(all, m)
	}
	return all
}
