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
	}
	for _, u := range []struct {
		size float64
		name string
	}{{1e15, "quadrillion"}, {1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}} {
		if x >= u.size {
			n := x / u.size
			if n >= 1e6 {
				return fmt.Sprintf("%.1e", x)
			}
			if n < 100 {
				return strings.TrimSuffix(strconv.FormatFloat(math.Floor(n*10)/10, 'f', 1, 64), ".0") + " " + u.name
			}
			return separate(strconv.FormatFloat(math.Floor(n), 'f', 0, 64)) + " " + u.name
		}
	}
	return ""
}

// power formats 2 to the n as a count.
func power(n int) string { return count(math.Exp2(float64(n))) }

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
	switch {
	case t.Year() > 999_999:
		return "the year " + count(float64(t.Year()))
	case t.Year() > 9999:
		return "the year " + number(uint64(t.Year()))
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
	if s <= 0 {
		return "over"
	}
	if years := s / inspect.Year; years >= 2 && years < 1000 {
		return strconv.FormatFloat(math.Floor(years*10)/10, 'f', 1, 64) + " years"
	} else if years >= 1000 {
		return count(math.Floor(years)) + " years"
	}
	return inspect.Span(s)
}

// length formats a duration with its unit: 200 ms, 1 s, 1 min.
func length(d time.Duration) string {
	for _, u := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d >= u.size && d%u.size == 0 && (u.size != time.Minute || d >= 2*time.Minute) {
			return separate(strconv.FormatInt(int64(d/u.size), 10)) + " " + u.name
		}
	}
	switch {
	case d >= time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d >= time.Millisecond:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) + " ms"
	case d <= -time.Millisecond:
		return "−" + length(-d)
	}
	return strconv.FormatInt(int64(d), 10) + " ns"
}

// about formats a duration roughly, for figures that change.
func about(d time.Duration) string {
	switch {
	case d < 0:
		return "−" + about(-d)
	case d < time.Microsecond:
		return "0 ms"
	case d < time.Millisecond:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 2, 64) + " ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 2*time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return inspect.Span(d.Seconds())
}

// uptime formats how long something has run.
func uptime(since, now time.Time) string { return inspect.Span(max(0, inspect.Age(since, now))) }

// detail formats an error as a sentence for people.
func detail(err error) string {
	text := service.Detail(err)
	if text != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text
}

// tick formats a layout's unit to follow "in": "this millisecond".
func tick(d time.Duration) string {
	switch d {
	case time.Millisecond:
		return "millisecond"
	case time.Second:
		return "second"
	case time.Microsecond:
		return "microsecond"
	}
	return length(d) + " tick"
}

// short formats a time of day, with the date if it is another day.
func short(t, now time.Time) string {
	if t.UTC().Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return clock(t)
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// An option is an option of a select.
type option struct{ Value, Name string }

// encodings returns the encodings of IDs that can be read.
func encodings() []option {
	all := []option{{"", "automatic"}}
	for _, name := range []string{"dec", "hex", "uuid", "base32", "base36", "base58", "base62", "bin", "xid", "ksuid", "objectid"} {
		all = append(all, option{name, name})
	}
	return all
}

// formatName describes a column with IDs in a format.
func formatName(name string) string {
	switch name {
	case "dec":
		return "numbers"
	case "uuid":
		return "UUIDs"
	}
	return "text, " + name
}
