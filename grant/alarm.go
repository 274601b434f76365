package grant

import (
	"log/slog"
	"time"
)

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
// firn_alarms_total, and in the log. Those after which IDs may exist twice, and
// no others, are logged as errors.
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

// DescribeAlarm returns the name of a kind of alarm, an index of
// KeeperStats.Alarms, as in the metric firn_alarms_total, and whether IDs may
// exist twice after it. Index 0 is no alarm and has no name.
func DescribeAlarm(kind int) (name string, twice bool) {
	a := alarms[kind]
	return a.name, a.level == slog.LevelError
}

// An alarm is what an operator should know about.
type alarm struct {
	Kind        alarmKind
	Node        uint64
	From, Until int64
	By          time.Duration
}
