package grant

import (
	"time"

	"github.com/firnid/firn"
)

// An actionKind is what the driver has to do for an action.
type actionKind uint8

// The kinds of actions.
const (
	actionGet     actionKind = iota + 1 // Key
	actionGetMany                       // Keys
	actionList                          // Key is the prefix
	actionCAS                           // Key, Old, Next
	actionTime                          // ask the store for its time; only with settings.storeClock
	actionBegin                         // use Node for [From, Until), replacing the previous grant
	actionExtend                        // the window now ends at Until
	actionSeal                          // stop making IDs; then pass eventSealed
	actionTimer                         // pass eventTick at Mono At; it replaces the previous timer
	actionReport                        // Status has changed, and whether the last node ID was given back (GaveBack)
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
	GaveBack    bool
	Alarm       raisedAlarm
}

// isRequest reports whether the action is a request to the store.
func (a action) isRequest() bool { return a.Kind >= actionGet && a.Kind <= actionTime }

// grant returns the grant of an actionBegin.
func (a action) grant() firn.Grant {
	return firn.Grant{Node: a.Node, From: timeOf(a.From), Until: timeOf(a.Until)}
}

// end returns the exclusive end of the window of an actionBegin or
// actionExtend.
func (a action) end() time.Time { return timeOf(a.Until) }
