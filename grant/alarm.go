package grant

import (
	"fmt"
	"iter"
	"log/slog"
	"time"
)

// An Alarm is a kind of condition that operators should know about. String
// returns its name. The zero Alarm means no alarm.
type Alarm uint8

// AlarmCounts are numbers of alarms, indexed by Alarm. Index 0, no alarm, is
// always 0; All leaves it out.
type AlarmCounts [numAlarms]uint64

// All returns an iterator over the number of alarms of each kind, 0 included,
// in the order of the constants.
func (c AlarmCounts) All() iter.Seq2[Alarm, uint64] {
	return func(yield func(Alarm, uint64) bool) {
		for kind := AlarmCloned; kind < numAlarms; kind++ {
			if !yield(kind, c[kind]) {
				return
			}
		}
	}
}

// The kinds of alarms. Each alarm is also a line of MemberOptions.Logger. Node,
// From, Until and By are attributes of that line, in lower case: a node ID, the
// begin and the end of a time span, and a difference between clocks.
const (
	// AlarmCloned: another process runs with a copy of this one's memory. IDs
	// of Node in [From, Until) may exist twice.
	AlarmCloned Alarm = iota + 1

	// AlarmStoreWentBack: the store went back to an earlier state. If the line
	// has From and Until, IDs of Node in [From, Until) may exist twice.
	AlarmStoreWentBack

	// AlarmClockStep: the clock jumped ahead by By, compared with a clock that
	// never goes back.
	AlarmClockStep

	// AlarmTakenOver: Node, which this process held until Until, has another
	// owner, because that window had ended by the owner's clock.
	AlarmTakenOver

	// AlarmFencedSpan: the sequencer was fenced below the end of this process's
	// window. IDs of Node in [From, Until) may exist twice.
	AlarmFencedSpan

	// AlarmStoreClockOff: the store's clock differs by By from this process's,
	// with which other members agree.
	AlarmStoreClockOff

	// AlarmMembersAhead: the clocks of other members are ahead by By of this
	// process's, with which the store agrees.
	AlarmMembersAhead

	// AlarmWindowsOverlapped: the store went back, or a copy of this process
	// gave Node back. IDs of Node in [From, Until) may exist twice.
	AlarmWindowsOverlapped

	numAlarms
)

// alarms are the kinds of alarms as operators see them: in the metric
// firn_alarms_total, and in the log. Those after which IDs may exist twice, and
// no others, are logged as errors.
var alarms = [numAlarms]struct {
	name    string
	level   slog.Level
	message string
}{
	AlarmCloned: {"cloned", slog.LevelError,
		"process cloned: IDs of this node ID and time span may exist twice"},
	AlarmStoreWentBack: {"store-went-back", slog.LevelError,
		"the store went back to an earlier state: no node ID is acquired or renewed until the sequencer is " +
			"fenced (firn node fence)"},
	AlarmClockStep: {"clock-step", slog.LevelWarn,
		"the clock jumped ahead"},
	AlarmTakenOver: {"taken-over", slog.LevelWarn,
		"node ID taken over, acquiring another"},
	AlarmFencedSpan: {"fenced-span", slog.LevelError,
		"sequencer fenced below the end of this window: IDs of this node ID and time span may exist twice"},
	AlarmStoreClockOff: {"store-clock-off", slog.LevelWarn,
		"the store's clock differs from this machine's and those of other members"},
	AlarmMembersAhead: {"members-ahead", slog.LevelWarn,
		"clocks of other members are ahead of this machine's and the store's"},
	AlarmWindowsOverlapped: {"windows-overlapped", slog.LevelError,
		"the store went back, or a copy gave the node ID back; fence if in doubt (firn node fence): IDs of this " +
			"node ID and time span may exist twice"},
}

// String returns the name of the kind, as in the metric firn_alarms_total.
func (a Alarm) String() string {
	if a == 0 || a >= numAlarms {
		return fmt.Sprintf("Alarm(%d)", uint8(a))
	}
	return alarms[a].name
}

// MayRepeat reports whether IDs may exist twice after an alarm of this kind.
func (a Alarm) MayRepeat() bool { return a < numAlarms && alarms[a].level == slog.LevelError }

// A raisedAlarm is one alarm, with what it is about.
type raisedAlarm struct {
	Kind        Alarm
	Node        uint64
	From, Until int64
	By          time.Duration
}
