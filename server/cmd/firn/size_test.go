package main

import "testing"

func TestSize(t *testing.T) {
	for s, want := range map[string]uint64{"0": 0, "5": 5, "5B": 5, "1K": 1 << 10, "1KiB": 1 << 10, "1536B": 1536, "512MiB": 512 << 20, "2G": 2 << 30, "2 GiB": 2 << 30} {
		if got, err := parseSize(s); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "GiB", "KiB", "-1", "-1B", "1.5G", "1T", "64KB", "64kib", "99999999999GiB", "0x10"} {
		if got, err := parseSize(s); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", s, got)
		}
	}
	for _, n := range []uint64{0, 1023, 1024, 1 << 30, 3 << 29, 1<<20 + 1} {
		if back, err := parseSize(formatSize(n)); err != nil || back != n {
			t.Errorf("formatSize(%d) = %s, which reads as %d, %v", n, formatSize(n), back, err)
		}
	}
}
