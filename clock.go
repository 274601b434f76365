package firn

import (
	"math"
	"sync/atomic"
	"time"
)

// A reading is a reading of the clock: rest nanoseconds into a tick, counted
// since the layout's epoch. Every decision whether an ID may be made depends
// only on readings; waits are measured by the runtime's clock.
type reading struct{ tick, rest uint64 }

// before reports whether r is earlier than s.
func (r reading) before(s reading) bool {
	return r.tick < s.tick || r.tick == s.tick && r.rest < s.rest
}

// reading converts a time of the clock. It returns a *ClockError if that is
// before the epoch.
func (c *core) reading(now time.Time) (reading, error) {
	tick, rest, where := c.layout.tickAt(now)
	switch {
	case where < 0:
		return reading{}, c.beforeEpoch(now)
	case where > 0:
		return reading{math.MaxUint64, 0}, nil
	}
	return reading{tick, rest}, nil
}

func (c *core) beforeEpoch(now time.Time) error {
	epoch := c.layout.Epoch()
	return &ClockError{Now: now, Last: epoch, Wait: epoch.Sub(now), beforeEpoch: true}
}

// processStart is the time when the process initialized this package. An
// earlier process that has ended made all its IDs before.
var processStart = time.Now()

// startUsed is set once a static grant has processStart as its reference. A
// second generator may follow the first on the same node ID, and the first may
// have run ahead.
var startUsed atomic.Bool

// newReference returns the time before which earlier holders of a static node
// ID made their last IDs: the start of the process for its first generator with
// a static grant, and now for a later one.
func newReference() time.Time {
	now := time.Now()
	if isReal(now) && startUsed.CompareAndSwap(false, true) {
		return processStart
	}
	return now
}

// isReal reports whether a time of time.Now was read outside a synctest bubble:
// in a bubble, it has no monotonic part.
func isReal(now time.Time) bool { return now != now.Round(0) }

// durationOf returns the length of n ticks of a unit, or the longest Duration.
func durationOf(n uint64, unit time.Duration) time.Duration {
	if n > uint64(math.MaxInt64/unit) {
		return math.MaxInt64
	}
	return time.Duration(n) * unit
}
