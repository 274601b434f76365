package server

import (
	"math"
	"testing"
)

// TestConnsWithin: whatever the limit of open files, connections leave some to
// the store.
func TestConnsWithin(t *testing.T) {
	for _, row := range []struct{ files, listeners, want, most int }{
		{math.MaxInt, 1, 10_000, 10_000},
		{1 << 20, 3, 10_000, 10_000},
		{1024, 1, 10_000, 672},
		{1024, 3, 10_000, 181},
		{256, 1, 10_000, 96},
		{256, 1, 50, 50},
		{64, 1, 10_000, leastConns},
		{0, 0, 1, leastConns},
	} {
		got := connsWithin(row.files, row.listeners, row.want)
		if got != row.most {
			t.Errorf("%d files, %d listeners, %d wanted: %d connections, want %d", row.files, row.listeners, row.want, got, row.most)
		}
		if used := row.listeners * (got + refusing); row.files >= 256 && used > row.files-row.files/8-ownFiles/2 {
			t.Errorf("%d files, %d listeners: connections take %d", row.files, row.listeners, used)
		}
	}
	if n := openFiles(); n < 16 {
		t.Errorf("%d files can be open", n)
	}
}
