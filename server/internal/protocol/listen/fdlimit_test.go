package listen

import (
	"math"
	"testing"
)

// TestConnsWithin: whatever the limit of open files, connections leave some to
// the store, and FilesFor is the least limit for them.
func TestConnsWithin(t *testing.T) {
	for _, row := range []struct {
		files                 uint64
		listeners, want, most int
	}{
		{math.MaxUint64, 1, 10_000, 10_000},
		{1 << 20, 3, 10_000, 10_000},
		{1024, 1, 10_000, 672},
		{1024, 3, 10_000, 181},
		{256, 1, 10_000, 96},
		{256, 1, 50, 50},
		{64, 1, 10_000, minConns},
		{0, 0, 1, minConns},
	} {
		got := ConnsWithin(row.files, row.listeners, row.want)
		if got != row.most {
			t.Errorf("%d files, %d listeners, %d wanted: %d connections, want %d", row.files, row.listeners, row.want, got, row.most)
		}
		if used := uint64(row.listeners * (got + refusalFiles)); row.files >= 256 && used > row.files-row.files/8-ownFiles/2 {
			t.Errorf("%d files, %d listeners: connections take %d", row.files, row.listeners, used)
		}
	}
	for _, listeners := range []int{0, 1, 2, 3, 7} {
		for conns := minConns + 1; conns < 20_000; conns += 1 + conns/20 {
			n := FilesFor(listeners, conns)
			if got, less := ConnsWithin(n, listeners, conns), ConnsWithin(n-1, listeners, conns); got != conns || less >= conns {
				t.Errorf("%d listeners with %d connections: %d with %d files, %d with one fewer", listeners, conns, got, n, less)
			}
		}
	}
}
