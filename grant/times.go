package grant

import (
	"math"
	"time"
)

// Records, and the machine, have times in Unix milliseconds.

// never stands for the absence of a time and is earlier than every time. Zero
// is a valid time, 1970-01-01.
const never int64 = math.MinInt64

// maxTime is the latest time of a record, and -maxTime the earliest: so much
// below the range of int64 that windows can be added without overflow, and that
// time.Duration has all differences.
const maxTime = math.MaxInt64 / int64(time.Millisecond) / 2

// inRange reports whether a record can have a time.
func inRange(v int64) bool { return v >= -maxTime && v <= maxTime }

// MaxSkew is how far the clocks of members, operators and the store may differ
// at a hand-over of node IDs, and at a Fence unless FenceOptions.Skew is set.
const MaxSkew = 10 * time.Second

// ms returns t in Unix milliseconds, rounded up; of the zero time, never.
func ms(t time.Time) int64 {
	if t.IsZero() {
		return never
	}
	v := t.UnixMilli()
	if t.Sub(time.UnixMilli(v)) > 0 {
		v++
	}
	return v
}

// timeOf returns the time of Unix milliseconds; never is the zero time.
func timeOf(v int64) time.Time {
	if v == never {
		return time.Time{}
	}
	return time.UnixMilli(v).UTC()
}

// later returns the later one of two times, rounded up to milliseconds. The
// zero time is before all others.
func later(a, b time.Time) time.Time { return timeOf(max(ms(a), ms(b))) }

// sooner returns the earlier of two times. never stands for no time.
func sooner(a, b int64) int64 {
	if a == never || b != never && b < a {
		return b
	}
	return a
}

// timeText formats a time for an error, and the zero time as none.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// clockOr returns now, or the system clock if it is nil.
func clockOr(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}
