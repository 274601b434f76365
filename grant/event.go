package grant

import "time"

// An eventKind is the kind of an event.
type eventKind uint8

// The kinds of events.
const (
	eventTick     eventKind = iota // the time of an actionTimer has come, or just time has passed
	eventJoin                      // a node ID is wanted
	eventLeave                     // the node ID is no longer wanted
	eventDemand                    // a caller waits for an ID that the window does not allow
	eventHint                      // the configuration may have changed
	eventAnswered                  // the store answered the last request
	eventSealed                    // actionSeal is complete; Used is final
	eventWentBack                  // the store has gone back (see Lineage); Values may have the configuration
)

// An event is something that happened to a member. Wall, Mono and Used are the
// values when the driver passes the event on.
type event struct {
	Kind eventKind
	Wall int64 // the member's clock
	Mono int64 // a clock that never goes back
	Used int64 // exclusive end of the times that the generator has ever used; never if none

	// Only for eventAnswered.
	Err     error    // the request failed; for actionCAS, the result is unknown unless it is ErrNotSent
	Applied bool     // for actionCAS
	Values  [][]byte // for actionGet (one), actionGetMany (one per key) and actionList; or see eventWentBack
	Keys    []string // for actionGetMany and actionList: the keys of Values

	// Only for an answer to actionTime: the store's clock showed a time in
	// [Time, Time+Within] at this moment.
	Time, Within int64
}

// value returns one of the Values, or nil if it is missing or empty.
func (e event) value(i int) []byte {
	if i < 0 || i >= len(e.Values) || len(e.Values[i]) == 0 {
		return nil
	}
	return e.Values[i]
}

// withTimes returns the event with the times that a driver adds when it passes
// the event on: wall is the member's clock, mono the time since the driver
// started by a clock that never goes back, and used the time up to which its
// Holder has used the grant. The machine has whole milliseconds: all drivers,
// such as a Keeper and a simulator, round in this way.
func (e event) withTimes(wall time.Time, mono time.Duration, used time.Time) event {
	e.Wall, e.Mono, e.Used = wall.UnixMilli(), mono.Milliseconds()+1, ms(used)
	return e
}
