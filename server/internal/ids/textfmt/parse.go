package textfmt

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

var sizeUnits = [...]struct {
	name string
	size uint64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"B", 1}}

// ParseSize parses a number of bytes such as 64KiB, 2G or 512.
func ParseSize(s string) (uint64, error) {
	unit := uint64(1)
	digits := s
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(s, u.name); ok {
			digits, unit = rest, u.size
			break
		}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
	hi, total := bits.Mul64(n, unit)
	if err != nil || hi != 0 || total >= 1<<62 {
		return 0, errors.New("it is not a size such as 512MiB or 2GiB")
	}
	return total, nil
}

// Size formats a number of bytes exactly, in the form of ParseSize.
func Size(n uint64) string {
	for _, u := range sizeUnits[:3] {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatUint(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatUint(n, 10) + "B"
}

// ParseNumber parses a decimal integer of 64 bits.
func ParseNumber(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("it exceeds 64 bits")
	case err != nil:
		return 0, errors.New("it must be a decimal integer without a sign")
	}
	return n, nil
}

// ParseTime parses a point in time: RFC 3339, a date (its beginning in UTC),
// Unix milliseconds, now, or a time relative to it such as -1h30m or +7d.
func ParseTime(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, errors.New("it is empty")
	}
	if rest, ok := strings.CutPrefix(s, "now"); ok {
		if rest == "" {
			return now, nil
		}
		if d, ok := parseSpan(rest); ok {
			return now.Add(d), nil
		}
	}
	if d, ok := parseSpan(s); ok {
		return now.Add(d), nil
	}
	if unit := otherUnix[len(s)]; unit != "" && s[0] < '4' && strings.Trim(s, "0123456789") == "" {
		return time.Time{}, fmt.Errorf("it looks like Unix %s, but numbers are milliseconds: write 13 digits, or a "+
			"time such as 2026-11-20T10:00:00Z", unit)
	}
	if strings.Trim(s, "0123456789") == "" || s[0] == '-' && len(s) > 1 && strings.Trim(s[1:], "0123456789") == "" {
		return ParseMillis(s)
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", time.DateOnly} {
		if t, err := time.Parse(layout, strings.ToUpper(s)); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("it is not a time such as 2026-11-20T10:00:00Z (UTC), 2026-11-20T10:00+01:00, " +
		"2026-11-20, 1795168800000 (Unix milliseconds), now or -1h")
}

// otherUnix maps the number of digits of a time between 2001 and 2096 to its
// Unix unit.
var otherUnix = map[int]string{10: "seconds", 16: "microseconds", 19: "nanoseconds"}

// parseSpan parses a signed duration like time.ParseDuration, and also days (d)
// of 24 hours and weeks (w) of 7 days.
func parseSpan(s string) (time.Duration, bool) {
	if s[0] != '-' && s[0] != '+' {
		return 0, false
	}
	if n := len(s) - 1; s[n] == 'd' || s[n] == 'w' {
		days, err := strconv.ParseFloat(s[1:n], 64)
		if s[n] == 'w' {
			days *= 7
		}
		if err != nil || !(days >= 0 && days < 100_000) {
			return 0, false
		}
		d := time.Duration(days * 24 * float64(time.Hour))
		if s[0] == '-' {
			d = -d
		}
		return d, true
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// ParseMillis parses Unix milliseconds exactly, even beyond int64: Boundary's
// time has 64 bits.
func ParseMillis(s string) (time.Time, error) {
	v, ok := new(big.Int).SetString(s, 10)
	switch {
	case !ok || s[0] == '+' || v.Sign() < 0 && !v.IsInt64():
		return time.Time{}, errors.New("it is not an integer number of Unix milliseconds")
	case v.BitLen() > 66: // 1000 times 2^56 s
		return time.Time{}, errors.New("it is later than the last time of any layout")
	}
	sec, ms := v.DivMod(v, big.NewInt(1000), new(big.Int))
	return time.Unix(sec.Int64(), ms.Int64()*1e6).UTC(), nil
}
