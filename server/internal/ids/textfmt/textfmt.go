// Package textfmt formats and parses times, counts and sizes for all of Firn:
// HTTP answers, output of the command, and web pages. Package firn formats IDs.
package textfmt

import (
	"strconv"
	"time"
)

// Stamp formats a time as RFC 3339 in UTC with milliseconds, the precision of
// records.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Grouped formats a count with a separator between groups of three digits.
func Grouped(n uint64, separator string) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + separator + digits[i:]
	}
	return digits
}
