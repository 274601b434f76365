package firn

import (
	"math"
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

// readingOf converts a time of the clock. It returns a *ClockError if that is
// before the epoch.
func (c *core) readingOf(now time.Time) (reading, error) {
	tick, rest, where := c.layout.tickAt(now)
	switch {
	case where < 0:
		return reading{}, c.layout.beforeEpochError(now)
	case where > 0:
		return reading{math.MaxUint64, 0}, nil
	}
	return reading{tick, rest}, nil
}

// durationOf returns the length of n ticks of a unit, or the longest Duration.
func durationOf(n uint64, unit time.Duration) time.Duration {
	if n > uint64(math.MaxInt64/unit) {
		return math.MaxInt64
	}
	return time.Duration(n) * unit
}

// readClock reads the clock, and the counter before and after it.
func (c *core) readClock(v *view) (err error) {
	if !c.tracker.On() {
		v.at = c.now()
	} else {
		o := c.tracker.Begin()
		v.at = c.now()
		v.seen = c.tracker.End(o, v.at)
	}
	v.now, err = c.readingOf(v.at)
	return err
}

// aheadSlot returns the exclusive end of the slots that the clock and MaxAhead
// allow.
func (c *core) aheadSlot(now reading) uint64 {
	return (min(c.aheadTick(now), c.endTick-1) + 1) << c.layout.seqBits
}

// aheadTick returns the last tick that the clock and MaxAhead allow.
func (c *core) aheadTick(now reading) uint64 {
	tick := now.tick + c.aheadTicks
	if now.rest+c.aheadRest >= uint64(c.layout.unit) {
		tick++
	}
	if tick < now.tick {
		return math.MaxUint64
	}
	return tick
}

// clockSlot returns the first slot of the clock's tick.
func (c *core) clockSlot(v *view) uint64 { return min(v.now.tick, c.endTick) << c.layout.seqBits }

// timeOf returns the time of a reading.
func (c *core) timeOf(now reading) time.Time {
	t, _ := c.layout.timeOf(now.tick)
	return t.Add(time.Duration(now.rest))
}

// untilAllowed returns the time from now until MaxAhead allows the tick.
func (c *core) untilAllowed(tick uint64, now reading) time.Duration {
	if tick <= now.tick {
		return 0
	}
	return durationOf(tick-now.tick, c.layout.unit) - time.Duration(now.rest) - c.maxAhead
}
