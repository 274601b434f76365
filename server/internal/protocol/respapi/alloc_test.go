package respapi

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
)

// fast is a layout that never has to wait.
const fast = "bits=time:40.node:2.seq:20,epoch=2026-01-01T00:00:00Z"

func newFast(t testing.TB) *service.Static {
	s, err := service.NewStatic(service.StaticConfig{Layout: firn.MustParseLayout(fast)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Commands that take IDs of a sequencer in use allocate nothing.
func TestNextDoesNotAllocate(t *testing.T) {
	for _, tt := range []struct {
		name  string
		input string
	}{
		{"one", line("NEXT orders")},
		{"inline", "NEXT orders\r\n"},
		{"INCR", strings.Repeat(line("INCR orders")+line("PING"), 3)},
		{"ten alike", strings.Repeat(line("NEXT orders"), 10)},
		{"thousand alike", strings.Repeat(line("NEXT orders"), 1000)},
		{"ten INCR alike", strings.Repeat(line("INCR orders"), 10)},
		{"ten INCRBY alike", strings.Repeat(line("INCRBY orders 1"), 10)},
		{"array", line("NEXT orders 1000")},
		{"packed", line("NEXTB orders 1000")},
	} {
		for _, layout := range []string{fast, "uuidv7"} {
			if layout == "uuidv7" && strings.Contains(tt.name, "INCR") {
				continue
			}
			c := &conn{s: NewServer(Config{Backend: newStatic(t, layout)}), nc: &discarding{}, who: new(auth.Credentials)}
			c.buf = []byte(tt.input)
			run := func() {
				c.r, c.w = 0, len(c.buf)
				c.answer()
				if bytes.HasPrefix(c.out, []byte("-")) {
					t.Fatalf("%s of layout %s: %s", tt.name, layout, c.out)
				}
				c.flush()
			}
			run()
			if got := testing.AllocsPerRun(100, run); got != 0 {
				t.Errorf("%s of layout %s: %v allocations, want none", tt.name, layout, got)
			}
		}
	}
}

// A discarding connection throws away what is written.
type discarding struct {
	scripted
	n int
}

func (d *discarding) Write(p []byte) (int, error) { d.n++; return len(p), nil }

// BenchmarkAnswer measures commands without a network.
func BenchmarkAnswer(b *testing.B) {
	for _, row := range []struct {
		name  string
		input string
		ids   int
	}{
		{"one", line("NEXT orders"), 1},
		{"100 alike", strings.Repeat(line("NEXT orders"), 100), 100},
		{"array of 1000", line("NEXT orders 1000"), 1000},
		{"packed 10000", line("NEXTB orders 10000"), 10000},
	} {
		b.Run(row.name, func(b *testing.B) {
			c := &conn{s: NewServer(Config{Backend: newFast(b)}), nc: &discarding{}, who: new(auth.Credentials)}
			c.buf = []byte(row.input)
			run := func() {
				c.r, c.w = 0, len(c.buf)
				c.answer()
				c.flush()
			}
			run()
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*row.ids), "ns/id")
		})
	}
}

// BenchmarkPipeline measures commands over TCP on loopback, client and server
// together. redis-benchmark -n 1000000 -P 100 NEXT orders measures the same
// from outside.
func BenchmarkPipeline(b *testing.B) {
	for _, depth := range []int{1, 16, 100, 1000} {
		b.Run(strconv.Itoa(depth), func(b *testing.B) {
			addr := serveTCP(b, NewServer(Config{Backend: newFast(b)}))
			c := dialTCP(b, addr)
			input := []byte(strings.Repeat(line("NEXT orders"), depth))
			c.do("NEXT orders")
			var one bytes.Buffer
			if _, err := c.Write(input); err != nil {
				b.Fatal(err)
			}
			for range depth {
				v, err := readValue(c.r)
				if err != nil {
					b.Fatal(err)
				}
				one.Write(appendBulk(nil, v.text))
			}
			answer := make([]byte, one.Len())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Write(input); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c.r, answer); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*depth), "ns/id")
		})
	}
}
