package inspect

import (
	"fmt"
	"math"
	"time"
)

// Stamp formats a time in UTC as RFC 3339, with as many decimals as ticks of
// unit need, at least three. Years beyond 9999 have more than four digits.
func Stamp(t time.Time, unit time.Duration) string {
	if unit%time.Millisecond == 0 {
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000000Z")
}

// Age returns how long before now t is, in seconds; negative for the future. A
// time.Duration holds only 292 years.
func Age(t, now time.Time) float64 {
	return float64(now.Unix()-t.Unix()) + float64(now.Nanosecond()-t.Nanosecond())/1e9
}

// Span formats a length of time in words, with the precision of everyday
// speech: "3 minutes", "41 years".
func Span(seconds float64) string {
	for _, u := range []struct {
		name string
		size float64
		from float64 // smallest number of this unit to use
	}{
		{"year", Year, 2},
		{"month", Year / 12, 2},
		{"day", 86400, 2},
		{"hour", 3600, 2},
		{"minute", 60, 2},
		{"second", 1, 1},
	} {
		n := seconds / u.size
		if n < u.from {
			continue
		}
		switch n = math.Floor(n); {
		case n == 1:
			return "1 " + u.name
		case n < 1e6:
			return fmt.Sprintf("%.0f %ss", n, u.name)
		}
		return fmt.Sprintf("%.0f million %ss", n/1e6, u.name)
	}
	return fmt.Sprintf("%.0f ms", seconds*1000)
}
