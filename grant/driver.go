package grant

import (
	"time"

	"github.com/firnid/firn"
)

// A driver of a Machine, such as a Keeper or a simulator, has times, and the
// Machine has whole milliseconds. The conversions are here, so that all drivers
// round in the same way.

// At returns the event with the times that a driver adds when it passes the
// event on: wall is the member's clock, mono the time since the driver started
// by a clock that never goes back, and used the time up to which its Holder has
// used the grant.
func (e Event) At(wall time.Time, mono time.Duration, used time.Time) Event {
	e.Wall, e.Mono, e.Used = wall.UnixMilli(), mono.Milliseconds()+1, Never
	if !used.IsZero() {
		e.Used = ms(used)
	}
	return e
}

// Grant returns the grant of an action Begin.
func (a Action) Grant() firn.Grant {
	return firn.Grant{Node: a.Node, From: timeOf(a.From), Until: timeOf(a.Until)}
}

// End returns the exclusive end of the window of an action Begin or Extend.
func (a Action) End() time.Time { return timeOf(a.Until) }
