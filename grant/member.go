package grant

import (
	"log/slog"
	"time"
)

// MemberOptions are how a process takes part in a sequencer: the settings that
// are its own, and are not compared with those of other members. Zero fields,
// and nil MemberOptions, mean the defaults given for each field.
type MemberOptions struct {
	// Nodes are the node IDs that the process may take: for example, one of two
	// ranges for two stores whose IDs meet in one database. If Lo and Hi are
	// equal, the node ID is pinned: it is acquired only while no other process
	// holds it. If Hi exceeds the layout's greatest node ID, joining fails. Nil
	// means all of the layout.
	Nodes *NodeRange

	// AllowClockBehind allows claims even if the clock is more than ten seconds
	// behind those of other members.
	AllowClockBehind bool

	// AllowClockAhead allows claims even if the clock is more than ten seconds
	// ahead of the store's, or of those of other members. The node ID is then
	// blocked for others until the time that this clock shows.
	AllowClockAhead bool

	// Now is the clock; nil means the system clock.
	Now func() time.Time

	// Logger receives messages for operators; nil discards them.
	Logger *slog.Logger
}

// settings are a member's options, with defaults filled in, and what its
// machine needs besides.
type settings struct {
	MemberOptions

	name   string  // of the sequencer
	host   string  // that is written into the records for people to read
	config *Config // that the sequencer must have been created with; nil accepts any

	// random returns random numbers that no two members share, for choices,
	// owners and nonces.
	random func() uint64

	// storeClock reports that the driver can answer actionTime.
	storeClock bool
}
