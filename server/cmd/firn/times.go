package main

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// parseTime parses a point in time: RFC 3339, a date (its beginning in UTC),
// Unix milliseconds, now, or a time relative to it such as -1h30m or +7d.
func parseTime(s string, now time.Time) (time.Time, error) {
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
		return time.Time{}, fmt.Errorf("it looks like Unix %s, but numbers are milliseconds: write 13 digits, or a time such as 2026-11-20T10:00:00Z", unit)
	}
	if strings.Trim(s, "0123456789") == "" || s[0] == '-' && len(s) > 1 && strings.Trim(s[1:], "0123456789") == "" {
		return parseMillis(s)
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", time.DateOnly} {
		if t, err := time.Parse(layout, strings.ToUpper(s)); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("it is not a time such as 2026-11-20T10:00:00Z (UTC), 2026-11-20T10:00+01:00, 2026-11-20, 1795168800000 (Unix milliseconds), now or -1h")
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

// parseMillis parses Unix milliseconds exactly, even beyond int64: Boundary's
// time has 64 bits.
func parseMillis(s string) (time.Time, error) {
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
