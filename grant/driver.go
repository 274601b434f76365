package grant

import (
	"time"

	"github.com/firnid/firn"
)

// A driver of a machine, such as a Keeper or a simulator, has times, and the
// machine has whole milliseconds. The conversions are here, so that all drivers
// round in the same way.

// at returns the event with the times that a driver adds when it passes the
// event on: wall is the member's clock, mono the time since the driver started
// by a clock that never goes back, and used the time up to which its Holder has
// used the grant.
func (e event) at(wall time.Time, mono time.Duration, used time.Time) event {
	e.Wall, e.Mono, e.Used = wall.UnixMilli(), mono.Milliseconds()+1, ms(used)
	return e
}

// Grant returns the grant of an actionBegin.
func (a action) Grant() firn.Grant {
	return firn.Grant{Node: a.Node, From: timeOf(a.From), Until: timeOf(a.Until)}
}

// End returns the exclusive end of the window of an actionBegin or actionExtend.
func (a action) End() time.Time { return timeOf(a.Until) }
