package grant

import (
	"math"
	"time"
)

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

// inRange reports whether windows can be added to a time without overflow, and
// whether time.Duration arithmetic can handle it.
func inRange(v int64) bool { return v >= -maxTime && v <= maxTime }

const maxTime = math.MaxInt64 / int64(time.Millisecond) / 2

// never stands for the absence of a time and is earlier than every time. Zero
// is a valid time, 1970-01-01.
const never int64 = math.MinInt64

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
