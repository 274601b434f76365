package grant

import (
	"time"

	"github.com/firnid/firn"
)

// A driver of a Machine, such as a Keeper or a simulator, has times, and the
// Machine has whole milliseconds. Here is where one becomes the other, so that
// all drivers round in the same way.

// At returns the event as a driver passes it on at a moment: wall is the
// member's clock, mono the time by a clock that never goes back since the
// driver started, and used what its Holder has used.
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
