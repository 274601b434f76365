package grant

import (
	"math"
	"time"

	"github.com/firnid/firn"
)

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

// never stands for the absence of a time and is earlier than every time. Zero
// is a valid time, 1970-01-01.
const never int64 = math.MinInt64

// An actionKind is what the driver has to do for an action.
type actionKind uint8

// The kinds of actions.
const (
	actionGet     actionKind = iota + 1 // Key
	actionGetMany                       // Keys
	actionList                          // Key is the prefix
	actionCAS                           // Key, Old, Next
	actionTime                          // ask the store for its time; only with Member.storeClock
	actionBegin                         // use Node for [From, Until), replacing the previous grant
	actionExtend                        // the window now ends at Until
	actionSeal                          // stop making IDs; then pass eventSealed
	actionTimer                         // pass eventTick at Mono At; it replaces the previous timer
	actionReport                        // Status has changed
	actionAlarm                         // report Alarm to the operators
)

// An action is something that the driver has to do. Actions are done in the
// order given.
type action struct {
	Kind        actionKind
	Key         string
	Keys        []string
	Old, Next   []byte
	Node        uint64
	From, Until int64
	At          int64
	Status      Status
	Alarm       raisedAlarm
}

// isRequest reports whether the action is a request to the store.
func (a action) isRequest() bool { return a.Kind >= actionGet && a.Kind <= actionTime }

// A driver of a machine, such as a Keeper or a simulator, has times, and the
// machine has whole milliseconds. The conversions are here, so that all drivers
// round in the same way.

// withTimes returns the event with the times that a driver adds when it passes
// the event on: wall is the member's clock, mono the time since the driver
// started by a clock that never goes back, and used the time up to which its
// Holder has used the grant.
func (e event) withTimes(wall time.Time, mono time.Duration, used time.Time) event {
	e.Wall, e.Mono, e.Used = wall.UnixMilli(), mono.Milliseconds()+1, ms(used)
	return e
}

// Grant returns the grant of an actionBegin.
func (a action) Grant() firn.Grant {
	return firn.Grant{Node: a.Node, From: timeOf(a.From), Until: timeOf(a.Until)}
}

// End returns the exclusive end of the window of an actionBegin or
// actionExtend.
func (a action) End() time.Time { return timeOf(a.Until) }
