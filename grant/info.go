package grant

import (
	"strings"
	"time"
)

// An Info is what the store knows about a sequencer as a whole.
type Info struct {
	Name        string
	State       State
	Config      Config
	Incarnation uint64    // grows with every creation and every fence
	Created     time.Time // by its creator's clock

	// Floor is a time before which no new grant begins: that of Create or that
	// of Fence, whichever is later. It is zero if neither set one.
	Floor time.Time

	// LongestWindow is the longest window that the sequencer ever had.
	LongestWindow time.Duration

	// MovedTo is the URL of the store that has the sequencer now; see Move.
	MovedTo string

	// LastChange is the last operation that changed this record.
	LastChange Change

	nonce string // new in every write of the record

	// The two parts of Floor: as Create set it, and as Fence did. Only that of
	// a fence lies above all windows that may have been granted, so that a
	// frozen member may continue.
	createFloor, fenceFloor time.Time
}

// laterFloor returns the later one of the two floors.
func (i Info) laterFloor() time.Time { return later(i.createFloor, i.fenceFloor) }

// newInfo returns a sequencer that was not created yet: its record has no time.
func newInfo(name string, c Config) Info {
	return Info{Name: name, State: Attached, Config: c, Incarnation: 1, LongestWindow: c.Window}
}

// CheckAgainst returns an error if the sequencer has another configuration than
// a process wants, or if it is attached and no ID of its layout can be made
// now. Nodes are not compared, and the prefix only if want has one.
func (i Info) CheckAgainst(want Config, now time.Time) error {
	if err := i.Config.compare(i.Name, want); err != nil || i.State != Attached {
		return err // a member that acquires a node ID learns the state
	}
	if err := i.Config.Layout.CheckGenerator(); err != nil {
		return kindErrorf(ErrDamaged, "sequencer %s: %s: destroy and purge it, and create it with another layout",
			i.Name, strings.TrimPrefix(err.Error(), "firn: "))
	}
	return i.Config.checkTime(i.Name, now)
}

// A NodeInfo is what the store knows about one node ID.
type NodeInfo struct {
	Node    uint64
	Owner   string    // of the process that holds or held it; random, and empty after Fence
	Host    string    // of that process
	Until   time.Time // the mark: exclusive end of all windows granted so far, also of a free node ID
	Written time.Time // when the record was last written, by its writer's clock
	Held    bool      // neither given back nor fenced; its window may have ended: see HeldAt
	Closing bool      // held, but its owner must give it back
}

// HeldAt reports whether the owner may use the node ID at a time: it is held,
// and its window has not ended. That of a process that crashed ends at Until.
func (n NodeInfo) HeldAt(now time.Time) bool { return n.Held && n.Until.After(now) }
