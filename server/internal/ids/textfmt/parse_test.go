package textfmt

import (
	"strings"
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)
	for s, want := range map[string]time.Time{
		"now":                            now,
		"-1h":                            now.Add(-time.Hour),
		"+90s":                           now.Add(90 * time.Second),
		"now-1h30m":                      now.Add(-90 * time.Minute),
		"-7d":                            now.AddDate(0, 0, -7),
		"+0.5d":                          now.Add(12 * time.Hour),
		"now+2w":                         now.AddDate(0, 0, 14),
		"2026-11-20":                     time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
		"2026-11-20T10:00:00Z":           time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		"2026-11-20t10:00:00.123z":       time.Date(2026, 11, 20, 10, 0, 0, 123e6, time.UTC),
		"2026-11-20T10:00:00+01:00":      time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
		"2026-11-20T10:00Z":              time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		"0":                              time.UnixMilli(0),
		"1700000000000":                  time.UnixMilli(1700000000000),
		"-5":                             time.UnixMilli(-5),
		"18446744073709551615":           time.Unix(18446744073709551, 615e6),
		"9223372036854775808":            time.Unix(9223372036854775, 808e6),
		"9223372036854775807":            time.UnixMilli(9223372036854775807),
		"2026-11-20T10:00:00.000000001Z": time.Date(2026, 11, 20, 10, 0, 0, 1, time.UTC),
	} {
		got, err := ParseTime(s, now)
		if err != nil || !got.Equal(want) {
			t.Errorf("ParseTime(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for s, want := range map[string]string{
		"":                              "it is empty",
		"yesterday":                     "it is not a time",
		"2026-11-20T10:00:00":           "it is not a time such as 2026-11-20T10:00:00Z (UTC)",
		"2026-13-01":                    "it is not a time",
		"-":                             "it is not a time",
		"now-":                          "it is not a time",
		"nowish":                        "it is not a time",
		"1.5":                           "it is not a time",
		"-99999999d":                    "it is not a time",
		"-NaNd":                         "it is not a time",
		"99999999999999999999999999999": "later than the last time of any layout",
		"340282366920938463463374607431768211456": "later than the last time of any layout",
		"-9223372036854775809":                    "not an integer number of Unix milliseconds",
	} {
		if got, err := ParseTime(s, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseTime(%q) = %v, %v, want an error with %q", s, got, err, want)
		}
	}
}

func TestSize(t *testing.T) {
	for s, want := range map[string]uint64{"0": 0, "5": 5, "5B": 5, "1K": 1 << 10, "1KiB": 1 << 10, "1536B": 1536, "512MiB": 512 << 20, "2G": 2 << 30, "2 GiB": 2 << 30} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "GiB", "KiB", "-1", "-1B", "1.5G", "1T", "64KB", "64kib", "99999999999GiB", "0x10"} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", s, got)
		}
	}
	for _, n := range []uint64{0, 1023, 1024, 1 << 30, 3 << 29, 1<<20 + 1} {
		if back, err := ParseSize(Size(n)); err != nil || back != n {
			t.Errorf("Size(%d) = %s, which reads as %d, %v", n, Size(n), back, err)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1 000", 1234567: "1 234 567"} {
		if got := Grouped(n, " "); got != want {
			t.Errorf("Grouped(%d) = %q, want %q", n, got, want)
		}
	}
}
