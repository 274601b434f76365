package grant

import (
	"fmt"
	"log/slog"
	"time"
)

// An Alarm is a kind of condition that operators should know about. The kinds
// are the indexes of AlarmCounts, and String returns their names. The zero
// Alarm means no alarm.
type Alarm uint8

// AlarmCounts are numbers of alarms, indexed by Alarm.
type AlarmCounts [numAlarms]uint64

const (
	// alarmCloned: another process runs with a copy of this one's memory. IDs
	// of Node in [From, Until) may exist twice.
	alarmCloned Alarm = iota + 1

	// alarmRolledBack: the store went back to an earlier state. If From and
	// Until are set, IDs of Node in [From, Until) may exist twice.
	alarmRolledBack

	// alarmClockJumped: the clock jumped ahead by By, compared with a clock
	// that never goes back.
	alarmClockJumped

	// alarmTakenOver: the node ID has another owner, because its window had
	// ended by that owner's clock.
	alarmTakenOver

	// alarmFenced: the sequencer was fenced at From, below the end of this
	// window. IDs of Node in [From, Until) may exist twice.
	alarmFenced

	// alarmStoreClockOff: the store's clock differs by By from this one's, with
	// which other members agree.
	alarmStoreClockOff

	// alarmMembersAhead: the clocks of other members are ahead by By of this
	// one's, with which the store agrees.
	alarmMembersAhead

	// alarmOverlapped: the store went back, or a copy gave Node back. IDs of
	// Node in [From, Until) may exist twice.
	alarmOverlapped

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
	alarmCloned: {"cloned", slog.LevelError,
		"process cloned: IDs of this node ID and time span may exist twice"},
	alarmRolledBack: {"store-went-back", slog.LevelError,
		"the store went back to an earlier state: no node ID is acquired or renewed until the sequencer is " +
			"fenced (firn node fence)"},
	alarmClockJumped: {"clock-step", slog.LevelWarn,
		"the clock jumped ahead"},
	alarmTakenOver: {"taken-over", slog.LevelWarn,
		"node ID taken over, acquiring another"},
	alarmFenced: {"fenced-span", slog.LevelError,
		"sequencer fenced below the end of this window: IDs of this node ID and time span may exist twice"},
	alarmStoreClockOff: {"store-clock-off", slog.LevelWarn,
		"the store's clock differs from this machine's and those of other members"},
	alarmMembersAhead: {"members-ahead", slog.LevelWarn,
		"clocks of other members are ahead of this machine's and the store's"},
	alarmOverlapped: {"windows-overlapped", slog.LevelError,
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
