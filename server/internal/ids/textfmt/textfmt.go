// Package textfmt formats and parses times, counts and sizes for all of Firn:
// HTTP answers, output of the command, and web pages. Package firn formats IDs.
package textfmt

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Stamp formats a time as RFC 3339 in UTC with milliseconds, the precision of
// records.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Left formats how much of a window is left.
func Left(d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return d.Round(100 * time.Millisecond).String()
}

// Ago formats how long ago something was.
func Ago(d time.Duration) string {
	if d < 0 {
		return "in " + (-d).Round(100*time.Millisecond).String()
	}
	return d.Round(100*time.Millisecond).String() + " ago"
}

// Grouped formats a count with a separator between groups of three digits.
func Grouped(n uint64, separator string) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + separator + digits[i:]
	}
	return digits
}

// Count formats 1 key, or 2 keys.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// FirstFew lists the first few of some values.
func FirstFew[T any](values []T, show func(T) string) string {
	var list []string
	for i, v := range values {
		if i == 12 {
			list = append(list, "…")
			break
		}
		list = append(list, show(v))
	}
	return strings.Join(list, ", ")
}
