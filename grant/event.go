package grant

import (
	"fmt"
	"math"
	"time"
)

// An EventKind says what happened.
type EventKind uint8

// The kinds of events.
const (
	Tick     EventKind = iota // the time of an action Timer has come, or simply time has passed
	Attach                    // a node ID is wanted
	Release                   // it is wanted no more
	Demand                    // somebody waits for an ID that the window does not allow
	Hint                      // the configuration may have changed
	Answered                  // the store answered the last request
	Sealed                    // the action Seal was done; Used is final
	WentBack                  // the store is known to have gone back (see Lineage)
)

// An Event is something that happened to a member. Wall, Mono and Used are
// those of the moment at which the driver passes the event on.
type Event struct {
	Kind EventKind
	Wall int64 // the member's clock
	Mono int64 // a clock that never goes back
	Used int64 // exclusive end of what the generator has used in its life; Never if nothing

	// Of Answered.
	Err     error    // the request failed; of a CAS: unknown unless ErrNotSent
	Applied bool     // of CAS
	Values  [][]byte // of Get (one), GetMany (one for each key) and List
	Keys    []string // of List: the keys of Values

	// Of an answer to Time: the store's clock showed a time in [Time, Time+Within]
	// at this moment.
	Time, Within int64
}

// Never is no time: it is earlier than every other. Zero is a time like any
// other, 1970-01-01.
const Never int64 = math.MinInt64

// An ActionKind says what the driver has to do.
type ActionKind uint8

// The kinds of actions.
const (
	Get     ActionKind = iota + 1 // Key
	GetMany                       // Keys
	List                          // Key is the prefix
	CAS                           // Key, Old, Next
	Time                          // ask the store for its time; only with Settings.StoreClock
	Begin                         // use Node for [From, Until), in place of what was used before
	Extend                        // the window ends at Until now
	Seal                          // stop making IDs; then pass Sealed
	Timer                         // pass Tick at Mono At; it replaces the timer before
	Report                        // Status has changed
	Alarm                         // Alarm is to be told to people
)

// An Action is something that the driver has to do, in the order given.
type Action struct {
	Kind        ActionKind
	Key         string
	Keys        []string
	Old, Next   []byte
	Node        uint64
	From, Until int64
	At          int64
	Status      Status
	Alarm       AlarmInfo
}

// IsRequest reports whether the action is a request to the store.
func (a Action) IsRequest() bool { return a.Kind >= Get && a.Kind <= Time }

// A Phase says what a member has of a sequencer.
type Phase uint8

// The phases of a member.
const (
	Idle    Phase = iota // no node ID is wanted or held
	Joining              // one is wanted, none held
	Holding              // one is held
	Losing               // what is left of a window is used, and another number wanted
	Leaving              // the number is being given back
)

var phaseNames = [...]string{"idle", "joining", "holding", "losing", "leaving"}

// String is the phase as a word.
func (p Phase) String() string {
	if int(p) >= len(phaseNames) {
		return fmt.Sprintf("Phase(%d)", uint8(p))
	}
	return phaseNames[p]
}

// A Status is what a member has of a sequencer at a moment.
type Status struct {
	Phase Phase
	Node  uint64 // of Holding, Losing and Leaving
	Until int64  // exclusive end of its window
	Owner string // of Holding and Losing: as in NodeInfo
	Err   error  // why no number could be had or renewed just now, or, if Idle, the last one was not given back; nil if nothing is amiss
}

// An AlarmKind says what people should know.
type AlarmKind uint8

// The kinds of alarms.
const (
	Cloned        AlarmKind = iota + 1 // another process goes on with this one's memory: IDs of Node in [From, Until) may exist twice
	RolledBack                         // the store went back to an earlier state
	ClockJumped                        // the clock went ahead by By, against a clock that never goes back
	TakenOver                          // the node ID has another owner, as its window was over by that one's clock
	Fenced                             // the sequencer was fenced at From, below the end of this window: IDs of Node in [From, Until) may exist twice
	StoreClockOff                      // the store's clock differs by By from this one's, which other members agree with
	MembersAhead                       // the clocks of other members are ahead by By of this one's, which the store agrees with
)

// An AlarmInfo is what an alarm says.
type AlarmInfo struct {
	Kind        AlarmKind
	Node        uint64
	From, Until int64
	By          time.Duration
}
