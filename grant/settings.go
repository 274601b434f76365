package grant

import (
	"log/slog"
	"time"
)

// Settings are a member's own settings for a sequencer. They are not compared
// with those of other members.
type Settings struct {
	Name string

	// Config is the configuration that the sequencer must have been created
	// with; nil accepts any.
	Config *Config

	// Nodes are the node IDs that the member may take: for example, one of two
	// ranges for two clusters that share a database. If Lo and Hi are equal, the
	// node ID is pinned. If Hi exceeds the layout's greatest node ID, attaching
	// fails. Nil means all of the layout.
	Nodes *Range

	// AllowClockBehind allows claims even if the clock is far behind those of
	// other members.
	AllowClockBehind bool

	// AllowClockAhead allows claims even if the clock is far ahead of the
	// store's, or of those of other members.
	AllowClockAhead bool

	// storeClock reports that the driver can answer actionTime.
	storeClock bool

	// Host is written into the records for people to read; it is truncated to
	// 64 bytes. Empty means the host's name.
	Host string

	// Now is the clock; nil means the system clock.
	Now func() time.Time

	// Timeout is how long a request to the store may take before its result
	// counts as unknown. Zero means 5 seconds. A Keeper never waits longer than
	// a sixth of the sequencer's window, so that one lost request does not cost
	// the window.
	Timeout time.Duration

	// Logger receives messages for operators; nil discards them.
	Logger *slog.Logger

	// random returns random numbers that no two members share, for choices,
	// owners and nonces.
	random func() uint64
}
