package server

import (
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestStackOfConnection: taking an ID over RESP needs no more stack than PING,
// 4 KiB: it is most of the memory of an idle connection.
func TestStackOfConnection(t *testing.T) {
	if nettest.Raced() {
		t.Skip("with the race detector, frames are larger")
	}
	const n = 400
	_, address := served(t, Config{})
	ask := func(conn net.Conn, request string, first byte) {
		fmt.Fprint(conn, request)
		b := make([]byte, 100)
		if must.Get(conn.Read(b))(t); b[0] != first {
			t.Fatalf("%q is answered by %q", request, b)
		}
	}
	var conns [n]net.Conn
	for i := range conns {
		conns[i] = nettest.Dial(t, address)
		ask(conns[i], "PING\r\n", '+')
	}
	ask(conns[0], "INCR orders\r\n", ':') // opens the sequencer
	// Only a collection shrinks a stack.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	stacks := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(stacks)
	before := stacks[0].Value.Uint64()
	for _, conn := range conns {
		ask(conn, "INCR orders\r\n", ':')
		ask(conn, "NEXT orders\r\n", '$')
	}
	metrics.Read(stacks)
	if grown := int64(stacks[0].Value.Uint64()-before) / n; grown > 2<<10 {
		t.Errorf("INCR grows the stack of a connection by %d bytes", grown)
	}
}
