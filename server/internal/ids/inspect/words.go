package inspect

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Stamp formats a time in UTC as RFC 3339, with as many decimals as ticks of
// unit need, at least three. Years beyond 9999 have more than four digits.
func Stamp(t time.Time, unit time.Duration) string {
	return string(appendStamp(make([]byte, 0, 40), t, unit))
}

// appendStamp appends Stamp. Package time is fast with a layout without
// decimals.
func appendStamp(b []byte, t time.Time, unit time.Duration) []byte {
	b = t.UTC().AppendFormat(b, time.RFC3339)
	b[len(b)-1] = '.' // replaces the Z
	digits, rest := 9, t.Nanosecond()
	if unit%time.Millisecond == 0 {
		digits, rest = 3, rest/1e6
	}
	end := len(b) + digits
	b = append(b, "000000000Z"[9-digits:]...)
	for i := end - 1; rest > 0; i-- {
		b[i] = '0' + byte(rest%10)
		rest /= 10
	}
	return b
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
		case n < 1e9:
			return fmt.Sprintf("%.0f million %ss", n/1e6, u.name)
		}
		return fmt.Sprintf("%.3g %ss", n, u.name)
	}
	return fmt.Sprintf("%.0f ms", seconds*1000)
}

// shortest formats v as JavaScript does: the fewest digits that distinguish the
// nearest float64 from its neighbours, padded with zeros.
func shortest(v uint64) string { return strconv.FormatFloat(float64(v), 'f', -1, 64) }
