package console

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/service"
)

// number formats an integer with thousands separators: 1,234,567.
func number(v uint64) string { return separate(strconv.FormatUint(v, 10)) }

func separate(digits string) string {
	if len(digits) <= 3 {
		return digits
	}
	first := cmp.Or(len(digits)%3, 3)
	var b strings.Builder
	b.WriteString(digits[:first])
	for i := first; i < len(digits); i += 3 {
		b.WriteByte(',')
		b.WriteString(digits[i : i+3])
	}
	return b.String()
}

// count formats a number that may be large: in full up to ten million, then in
// words.
func count(x float64) string {
	switch {
	case x < 0 || math.IsNaN(x):
		return "0"
	case x < 10 && x != math.Trunc(x):
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x < 1e7:
		return separate(strconv.FormatFloat(math.Floor(x), 'f', 0, 64))
	case x >= 1e18:
		return fmt.Sprintf("%.1e", x)
	}
	name := "million"
	x /= 1e6
	for _, larger := range []string{"billion", "trillion"} {
		if x >= 1000 {
			name = larger
			x /= 1000
		}
	}
	if x < 100 {
		return strings.TrimSuffix(strconv.FormatFloat(math.Floor(x*10)/10, 'f', 1, 64), ".0") + " " + name
	}
	return separate(strconv.FormatFloat(math.Floor(x), 'f', 0, 64)) + " " + name
}

// plural formats a number with its noun.
func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}

// utc formats a time for people, to the millisecond.
func utc(t time.Time) string {
	if t.Year() > 9999 || t.Year() < 0 {
		return "the year " + strconv.Itoa(t.Year())
	}
	return t.UTC().Format("2006-01-02 15:04:05.000") + " UTC"
}

// clock formats the time of day.
func clock(t time.Time) string { return t.UTC().Format("15:04:05") + " UTC" }

// iso formats a time for scripts, which convert it to local time. It is empty
// if JavaScript cannot hold the time.
func iso(t time.Time) string {
	if t.Year() > 9999 || t.Year() < 1 {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// day formats a date, or only the year if it is far away.
func day(t time.Time) string {
	if t.Year() > 9999 {
		return "the year " + count(float64(t.Year()))
	}
	return t.UTC().Format(time.DateOnly)
}

// ago formats how long before now t was, in words.
func ago(t, now time.Time) string {
	s := inspect.Age(t, now)
	switch {
	case math.Abs(s) < 0.001:
		return "now"
	case s < 0:
		return "in " + inspect.Span(-s)
	}
	return inspect.Span(s) + " ago"
}

// left formats how much time there is until t, in words.
func left(t, now time.Time) string {
	s := -inspect.Age(t, now)
	switch years := s / inspect.Year; {
	case s <= 0:
		return "over"
	case years < 2:
		return inspect.Span(s)
	case years < 1000:
		return strconv.FormatFloat(math.Floor(years*10)/10, 'f', 1, 64) + " years"
	default:
		return count(math.Floor(years)) + " years"
	}
}

// length formats a duration with its unit: 200 ms, 1 s, 5 min. One that is not
// a whole number of units is rounded.
func length(d time.Duration) string {
	for _, u := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d >= u.size && d%u.size == 0 && (u.size != time.Minute || d >= 2*time.Minute) && (u.size != time.Microsecond || d < time.Millisecond) {
			return separate(strconv.FormatInt(int64(d/u.size), 10)) + " " + u.name
		}
	}
	switch {
	case d < 0:
		return "−" + length(-d)
	case d >= 2*time.Minute:
		return inspect.Span(d.Seconds())
	case d >= time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(float64(d)/1e6, 'g', 2, 64) + " ms"
}

// detail formats an error as a sentence for people.
func detail(err error) string { return title(service.Detail(err)) }

// title begins a sentence.
func title(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] }

// tick formats a layout's unit to follow "in": "this millisecond".
func tick(d time.Duration) string {
	switch d {
	case time.Millisecond:
		return "millisecond"
	case time.Second:
		return "second"
	}
	return length(d) + " tick"
}

// short formats a time of day, with the date if it is another day.
func short(t, now time.Time) string {
	if day(t) == day(now) {
		return clock(t)
	}
	return day(t) + " " + clock(t)
}
