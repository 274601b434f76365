package grant

import (
	"fmt"
	"log/slog"
	"math"
	"time"
)

// An eventKind is the kind of an event.
type eventKind uint8

// The kinds of events.
const (
	eventTick     eventKind = iota // the time of an actionTimer has come, or just time has passed
	eventAttach                    // a node ID is wanted
	eventRelease                   // the node ID is no longer wanted
	eventDemand                    // a caller waits for an ID that the window does not allow
	eventHint                      // the configuration may have changed
	eventAnswered                  // the store answered the last request
	eventSealed                    // actionSeal is complete; Used is final
	eventWentBack                  // the store is known to have gone back (see Lineage)
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
	Values  [][]byte // for actionGet (one), actionGetMany (one per key) and actionList; for eventWentBack, the configuration if it could be read
	Keys    []string // for actionList: the keys of Values

	// Only for an answer to actionTime: the store's clock showed a time in
	// [Time, Time+Within] at this moment.
	Time, Within int64
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
	actionTime                          // ask the store for its time; only with Settings.storeClock
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
	Alarm       alarm
}

// isRequest reports whether the action is a request to the store.
func (a action) isRequest() bool { return a.Kind >= actionGet && a.Kind <= actionTime }

// A Phase is the state of a member of a sequencer.
type Phase uint8

// The phases of a member.
const (
	Idle    Phase = iota // no node ID is wanted or held
	Joining              // a node ID is wanted, none is held
	Holding              // a node ID is held
	Losing               // the rest of a window is used, and another node ID is wanted
	Leaving              // the node ID is being given back
)

var phaseNames = [...]string{"idle", "joining", "holding", "losing", "leaving"}

// String returns the phase as a word.
func (p Phase) String() string {
	if int(p) >= len(phaseNames) {
		return fmt.Sprintf("Phase(%d)", uint8(p))
	}
	return phaseNames[p]
}

// A Status describes a member of a sequencer at one moment.
type Status struct {
	Phase Phase
	Node  uint64    // for Holding, Losing and Leaving
	Until time.Time // exclusive end of its window; it is renewed as long as IDs are made
	Owner string    // for Holding and Losing: as in NodeInfo
	Err   error     // why no node ID could be acquired or renewed, or, if Idle, why the last one was not given back; nil if all is well
}

// An alarmKind is the kind of a condition that operators should know about.
type alarmKind uint8

// The kinds of alarms.
const (
	alarmCloned        alarmKind = iota + 1 // another process runs with a copy of this one's memory: IDs of Node in [From, Until) may exist twice
	alarmRolledBack                         // the store went back to an earlier state; if From and Until are set, IDs of Node in [From, Until) may exist twice
	alarmClockJumped                        // the clock jumped ahead by By, compared with a clock that never goes back
	alarmTakenOver                          // the node ID has another owner, because its window had ended by that owner's clock
	alarmFenced                             // the sequencer was fenced at From, below the end of this window: IDs of Node in [From, Until) may exist twice
	alarmStoreClockOff                      // the store's clock differs by By from this one's, with which other members agree
	alarmMembersAhead                       // the clocks of other members are ahead by By of this one's, with which the store agrees
	alarmOverlapped                         // the store went back, or a copy gave Node back: IDs of Node in [From, Until) may exist twice
	numAlarms
)

// alarms are the kinds of alarms as operators see them: in the metric
// firn_alarms_total, and in the log.
var alarms = [numAlarms]struct {
	name    string
	level   slog.Level
	message string
}{
	alarmCloned:        {"cloned", slog.LevelError, "process cloned: IDs of this node ID and time span may exist twice"},
	alarmRolledBack:    {"store-went-back", slog.LevelError, "the store went back to an earlier state: no node ID is acquired or renewed until the sequencer is fenced (firn node fence)"},
	alarmClockJumped:   {"clock-step", slog.LevelWarn, "the clock jumped ahead"},
	alarmTakenOver:     {"taken-over", slog.LevelWarn, "node ID taken over, acquiring another"},
	alarmFenced:        {"fenced-span", slog.LevelError, "sequencer fenced below the end of this window: IDs of this node ID and time span may exist twice"},
	alarmStoreClockOff: {"store-clock-off", slog.LevelWarn, "the store's clock differs from this machine's and those of other members"},
	alarmMembersAhead:  {"members-ahead", slog.LevelWarn, "clocks of other members are ahead of this machine's and the store's"},
	alarmOverlapped:    {"windows-overlapped", slog.LevelError, "the store went back, or a copy gave the node ID back; fence if in doubt (firn node fence): IDs of this node ID and time span may exist twice"},
}

// AlarmName returns the name of a kind of alarm, an index of
// KeeperStats.Alarms, as in the metric firn_alarms_total. Index 0 has none.
func AlarmName(kind int) string { return alarms[kind].name }

// An alarm is what an operator should know about.
type alarm struct {
	Kind        alarmKind
	Node        uint64
	From, Until int64
	By          time.Duration
}
