package firn

import (
	"math"
	"time"
)

// A clock counts ticks since a layout's epoch. Every decision whether an ID may
// be made depends only on read; waits are measured by the runtime's clock.
type clock struct {
	now    func() time.Time
	layout *Layout
}

// A reading is a reading of the clock: rest nanoseconds into a tick.
type reading struct{ tick, rest uint64 }

// before reports whether r is earlier than s.
func (r reading) before(s reading) bool {
	return r.tick < s.tick || r.tick == s.tick && r.rest < s.rest
}

// read reads the clock. It returns a *ClockError if the clock is before the
// epoch.
func (c *clock) read() (reading, error) { return c.reading(c.now()) }

// reading converts a time of the clock.
func (c *clock) reading(now time.Time) (reading, error) {
	tick, rest, where := c.layout.tickAt(now)
	switch {
	case where < 0:
		epoch := c.layout.Epoch()
		return reading{}, &ClockError{Now: now, Last: epoch, Wait: epoch.Sub(now), beforeEpoch: true}
	case where > 0:
		return reading{math.MaxUint64, 0}, nil
	}
	return reading{tick, rest}, nil
}

// span returns the length of n ticks of a unit, or the longest Duration.
func span(n uint64, unit time.Duration) time.Duration {
	if n > uint64(math.MaxInt64/unit) {
		return math.MaxInt64
	}
	return time.Duration(n) * unit
}
