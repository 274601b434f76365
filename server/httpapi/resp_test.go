package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/firnid/firn/server/nettest"
)

// serveSwitch serves a Handler whose connections may switch to a protocol that
// echoes the first line it receives, unless only is set.
func serveSwitch(t *testing.T, only bool) (h *Handler, dial func() net.Conn) {
	t.Helper()
	h = NewHandler(Config{Backend: newStatic(t, "default"), RESP: func(*http.Request) func(net.Conn) {
		if only {
			return nil
		}
		return func(conn net.Conn) {
			defer conn.Close()
			line, _ := bufio.NewReader(conn).ReadString('\n')
			_, _ = io.WriteString(conn, "echo "+line)
		}
	}})
	s, l := NewServer(h), nettest.Listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-served
	})
	return h, func() net.Conn {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
}

// TestSwitchToRESP: a connection is switched only if it comes from the address
// of its client, and the switch is offered only to connections that may use it.
func TestSwitchToRESP(t *testing.T) {
	const upgrade = "Connection: keep-alive, Upgrade\r\nUpgrade: firn-resp\r\n"
	for _, row := range []struct {
		only, drain bool
		headers     string // SELF is the client's address
		status      int
	}{
		{headers: upgrade + "Firn-Peer: SELF\r\n", status: 101},
		{headers: upgrade + "Firn-Peer: 127.0.0.1:1\r\n", status: 400},
		{headers: upgrade + "Firn-Peer: localhost\r\n", status: 400},
		{headers: upgrade, status: 400},
		{headers: "Upgrade: firn-resp\r\nFirn-Peer: SELF\r\n", status: 400},
		{headers: "Connection: Upgrade\r\nUpgrade: websocket\r\nFirn-Peer: SELF\r\n", status: 400},
		{headers: upgrade + "X-Forwarded-For: 127.0.0.1:1\r\nFirn-Peer: 127.0.0.1:1\r\n", status: 400},
		{headers: upgrade + "Content-Length: 6\r\nFirn-Peer: SELF\r\n", status: 400},
		{headers: upgrade + "Transfer-Encoding: chunked\r\nFirn-Peer: SELF\r\n", status: 400},
		{headers: upgrade + "Expect: 100-continue\r\nContent-Length: 6\r\nFirn-Peer: SELF\r\n", status: 400},
		{only: true, headers: upgrade + "Firn-Peer: SELF\r\n", status: 404},
		{drain: true, headers: upgrade + "Firn-Peer: SELF\r\n", status: 503},
	} {
		h, dial := serveSwitch(t, row.only)
		if row.drain {
			h.Drain()
		}
		conn := dial()
		headers := strings.ReplaceAll(row.headers, "SELF", conn.LocalAddr().String())
		fmt.Fprintf(conn, "GET /v1/resp HTTP/1.1\r\nHost: localhost\r\n%s\r\n", headers)
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.StatusCode != row.status {
			t.Errorf("%q: %+v, %v, want %d", row.headers, resp, err, row.status)
			continue
		}
		if row.status == 101 {
			_, _ = io.WriteString(conn, "PING\r\n")
			if line, err := r.ReadString('\n'); line != "echo PING\r\n" || resp.Header.Get("Upgrade") != "firn-resp" {
				t.Errorf("after the switch: %q, %v", line, err)
			}
		}

		conn = dial()
		const asks = "Firn-Nonce: x\r\nContent-Length: 0\r\n"
		for _, headers := range []string{"Content-Length: 0\r\n", asks, "Firn-Nonce: x\r\nContent-Length: 1\r\n"} {
			fmt.Fprintf(conn, "POST /v1/sequencers/orders/next HTTP/1.1\r\nHost: localhost\r\n%s\r\n", headers)
			if headers[len(headers)-3] == '1' {
				_, _ = io.WriteString(conn, "x")
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				break // the last answer of a draining server
			}
			offered := resp.Header.Get("Firn-Upgrade") == "firn-resp" && resp.Header.Get("Connection") == "Firn-Upgrade"
			if want := headers == asks && !row.only && !row.drain; offered != want {
				t.Errorf("only %t, drain %t, %q: RESP is offered: %t, want %t", row.only, row.drain, headers, offered, want)
			}
		}
	}
}

// TestSwitchEarly: data sent before the switch is not read as RESP.
func TestSwitchEarly(t *testing.T) {
	_, dial := serveSwitch(t, false)
	conn := dial()
	fmt.Fprintf(conn, "GET /v1/resp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: firn-resp\r\nFirn-Peer: %s\r\n\r\nPING\r\n", conn.LocalAddr())
	if text, err := io.ReadAll(conn); strings.Contains(string(text), "echo") {
		t.Errorf("%q, %v", text, err)
	}
}

func TestSamePeer(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"10.0.0.1:5", "10.0.0.1:5"}:            true,
		{"10.0.0.1:5", "10.0.0.1:6"}:            false,
		{"10.0.0.1:5", "10.0.0.2:5"}:            false,
		{"[::ffff:10.0.0.1]:5", "10.0.0.1:5"}:   true,
		{"[fe80::1%eth0]:5", "[fe80::1%en1]:5"}: true,
		{"[fe80::1]:5", "[fe80::2]:5"}:          false,
		{"@", "@"}:                              false,
		{"", ""}:                                false,
		{"pipe", "pipe"}:                        false,
	} {
		if got := samePeer(pair[0], pair[1]); got != want {
			t.Errorf("samePeer(%q, %q) = %t", pair[0], pair[1], got)
		}
	}
}
