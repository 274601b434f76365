package grant

import (
	"fmt"
	"time"
)

// A Phase is the state of a member of a sequencer.
type Phase uint8

// The phases of a member.
const (
	Idle    Phase = iota // no node ID is wanted or held
	Joining              // a node ID is wanted, none is held
	Holding              // a node ID is held; its window may have ended: see Status.Holds
	Losing               // another node ID is wanted; the rest of this one's window is used, if any
	Leaving              // the node ID is being given back
)

var phaseNames = [...]string{"idle", "joining", "holding", "losing", "leaving"}

// String returns the phase as a word.
func (p Phase) String() string {
	if int(p) >= len(phaseNames) {
		return fmt.Sprintf("Phase(%d)", uint8(p))
	}
	return phaseNames[p]
}

// A Status describes a member of a sequencer at one moment.
type Status struct {
	Phase Phase
	Node  uint64    // for Holding, Losing and Leaving
	Until time.Time // exclusive end of its window, renewed as long as IDs are made; it may have passed
	Owner string    // for Holding and Losing: as in NodeInfo

	// Err is why no node ID could be acquired or renewed or, if Idle, why the
	// last one was not given back; nil if all is well.
	Err error
}

// Holds reports whether the member may use a node ID at a time: its window has
// not ended. If no IDs are made, or the store cannot be reached, a window ends
// while the phase remains Holding or Losing.
func (s Status) Holds(now time.Time) bool {
	return (s.Phase == Holding || s.Phase == Losing) && s.Until.After(now)
}
