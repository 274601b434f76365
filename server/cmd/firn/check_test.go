package main

import "testing"

func TestByteSize(t *testing.T) {
	for s, want := range map[string]byteSize{"0": 0, "5": 5, "5B": 5, "1K": 1 << 10, "1KiB": 1 << 10, "512MiB": 512 << 20, "2G": 2 << 30, "2 GiB": 2 << 30} {
		var got byteSize
		if err := got.Set(s); err != nil || got != want {
			t.Errorf("Set(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "GiB", "-1", "1.5G", "1T", "99999999999GiB", "0x10"} {
		var got byteSize
		if err := got.Set(s); err == nil {
			t.Errorf("Set(%q) = %d, want an error", s, got)
		}
	}
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1 << 30: "1 GiB", 3 << 29: "1.5 GiB", 1<<20 + 1: "1 MiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("bytesText(%d) = %q, want %q", n, got, want)
		}
		var back byteSize
		if err := back.Set(byteFlag(n)); err != nil || uint64(back) != n {
			t.Errorf("byteFlag(%d) = %s, which reads as %d, %v", n, byteFlag(n), back, err)
		}
	}
}
