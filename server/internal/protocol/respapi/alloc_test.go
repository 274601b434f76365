package respapi

import (
	"bytes"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
)

// fast is a layout that never has to wait.
const fast = "bits=time:40.node:2.seq:20,epoch=2026-01-01T00:00:00Z"

func newFast(t testing.TB) *service.StaticBackend {
	s := must.Get(service.NewStaticBackend(service.StaticBackendConfig{Layout: firn.MustParseLayout(fast)}))(t)
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
			c := &conn{server: NewServer(Config{Front: service.Front{Backend: newStatic(t, layout)}}), nc: &discardConn{}, creds: new(auth.Credentials)}
			c.Take()
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

// A discardConn throws away what is written.
type discardConn struct{ scriptedConn }

func (*discardConn) Write(p []byte) (int, error) { return len(p), nil }
