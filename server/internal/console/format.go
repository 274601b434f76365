package console

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// number formats an integer with thousands separators: 1,234,567.
func number(v uint64) string { return textfmt.Grouped(v, ",") }

// count formats a number that may be large or a rate.
func count(x float64) string {
	switch {
	case x < 0 || math.IsNaN(x):
		return "0"
	case x < 10 && x != math.Trunc(x):
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x >= 1e18:
		return fmt.Sprintf("%.1e", x)
	}
	return number(uint64(x))
}

// plural formats a number with its noun.
func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}

// orMore formats a number that is only the least one if more is true.
func orMore(n uint64, more bool) string {
	if more {
		return number(n) + " or more"
	}
	return number(n)
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

// timeLeft formats how much time there is until t, in words.
func timeLeft(t, now time.Time) string {
	if s := -inspect.Age(t, now); s > 0 {
		return inspect.Span(s)
	}
	return "over"
}

// duration formats a duration to three digits or more.
func duration(d time.Duration) string {
	switch {
	case d.Abs() >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d.Abs() >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.String()
}

// detail formats an error as a sentence for people.
func detail(err error) string { return sentence(textfmt.Message(err)) }

// sentence begins a sentence.
func sentence(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] }

// unitName formats a layout's unit to follow "in": "this millisecond".
func unitName(d time.Duration) string {
	switch d {
	case time.Millisecond:
		return "millisecond"
	case time.Second:
		return "second"
	}
	return duration(d) + " tick"
}

// momentOf formats a time of day, with the date if it is another day.
func momentOf(t, now time.Time) string {
	if day(t) == day(now) {
		return clock(t)
	}
	return day(t) + " " + clock(t)
}
