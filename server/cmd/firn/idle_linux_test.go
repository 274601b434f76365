//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// memoryOf is a line about the memory of a process, in KiB: VmRSS is how much is
// in RAM, and VmHWM the most that was.
func memoryOf(t *testing.T, pid int, name string) (kib int) {
	t.Helper()
	text := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(t)
	_, rest, _ := strings.Cut(string(text), name+":")
	must.Get(fmt.Sscan(rest, &kib))(t)
	return kib
}

// idleKinds are what connections send before they are idle.
var idleKinds = []string{"POST /v1/sequencers/idle/next HTTP/1.1\r\nHost: localhost\r\n\r\n", "NEXT idle\r\n", ""}

// TestIdleConnections: firn serve holds as many idle connections as
// --max-connections allows, for little memory, and all end in order when the
// server stops.
func TestIdleConnections(t *testing.T) {
	const files = 200 // besides the connections
	most := uint64(10_000)
	if testing.Short() {
		most = 1000
	}
	var allowed syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &allowed))
	if allowed.Max < 2*files {
		t.Skipf("a process may have %d open files here, which is too few", allowed.Max)
	}
	n := int(min(most, allowed.Max-files))
	server := startProcess(t, "127.0.0.1:0", fmt.Sprintf("--node 7 --max-connections %d", n))
	first := memoryOf(t, server.cmd.Process.Pid, "VmRSS")
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i] = nettest.Dial(t, strings.TrimPrefix(server.url, "http://"))
		text := idleKinds[i%len(idleKinds)]
		must.Get(io.WriteString(conns[i], text))(t)
		if text != "" {
			_ = conns[i].SetDeadline(time.Now().Add(must.Patience))
			b := make([]byte, 1024)
			size := must.Get(conns[i].Read(b))(t)
			if answer := string(b[:size]); !strings.HasPrefix(answer, "HTTP/1.1 200") && answer[0] != '$' {
				t.Fatalf("connection %d: %s", i, answer)
			}
		}
	}
	last := memoryOf(t, server.cmd.Process.Pid, "VmRSS")
	must.Do(t, server.cmd.Process.Signal(syscall.SIGTERM))
	for i, conn := range conns {
		_ = conn.SetDeadline(time.Now().Add(must.Patience))
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Fatalf("connection %d ends with %v", i, err)
		}
		conn.Close()
	}
	<-server.ended
	if state := server.cmd.ProcessState; !state.Success() || !strings.Contains(server.log.String(), `"msg":"stopped"`) {
		t.Errorf("firn serve: %v\n%s", state, server.log)
	}
	t.Logf("report: %d idle connections held; the server has %d MiB with them and %d MiB without", n, last>>10, first>>10)
	limit := 32.0
	if nettest.Raced() {
		limit *= 8
	}
	if kib := float64(last-first) / float64(n); kib > limit && !testing.Short() {
		t.Errorf("an idle connection costs %.1f KiB, want %v at most", kib, limit)
	}
}
