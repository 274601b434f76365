package grant

import "fmt"

// A State is the state of a sequencer in a store, for all its processes.
type State uint8

// The states of a sequencer.
const (
	Attached   State = iota + 1 // members may hold node IDs
	Detaching                   // members give their node IDs back
	Detached                    // no member holds one, until Attach
	Destroying                  // members give their node IDs back
	Destroyed                   // until it is created again with the same layout
	Purged                      // may be created again with any configuration
)

var stateNames = [...]string{
	Attached: "attached", Detaching: "detaching", Detached: "detached",
	Destroying: "destroying", Destroyed: "destroyed", Purged: "purged",
}

// String returns the state as a word.
func (s State) String() string {
	if s < Attached || s > Purged {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}

// err returns why no node ID can be acquired in this state.
func (s State) err() error {
	switch s {
	case Attached:
		return nil
	case Detaching, Detached:
		return ErrDetached
	default:
		return ErrDestroyed
	}
}
