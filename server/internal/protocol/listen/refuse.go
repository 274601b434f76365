package listen

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// Limits for refusing connections beyond Config.MaxConns.
const (
	// maxRefusals is how many are refused concurrently. More wait in the
	// system's queue.
	maxRefusals = 64

	// refuseTimeout is how long a refusal may take, with its TLS handshake.
	refuseTimeout = time.Second
)

// fullMessage is the message to a refused client.
const fullMessage = "too many connections: the server has reached --max-connections; retry later, or use another server"

// admit gives a connection a slot, or has it refused without one. It waits
// only while the maximum number is being refused.
func (m *Mux) admit(c *countedConn) {
	do := m.dispatch
	c.slot = m.slots.Add(1) <= int64(m.config.MaxConns)
	if !c.slot && m.config.Strangers.makeRoom(m, c.accepted.Add(-m.config.Hello)) {
		c.slot = true
	}
	m.config.Strangers.enter(c)
	if !c.slot {
		m.slots.Add(-1)
		do = m.refuseFull
		select {
		case m.refusals <- struct{}{}:
		case <-m.ctx.Done():
			_ = c.Close()
			return
		}
	}
	m.turns <- struct{}{}
	m.hellos.Go(func() { do(c) })
}

// refuseFull refuses a connection in its own protocol. A client of gRPC reports
// a connection that is closed as UNAVAILABLE, and reconnects by itself.
func (m *Mux) refuseFull(raw *countedConn) {
	defer func() { <-m.turns; <-m.refusals }()
	defer raw.Close()
	defer context.AfterFunc(m.ctx, func() { _ = raw.Close() })()
	m.warn("refusing connections: --max-connections reached", "limit", m.config.MaxConns, "peer", raw.RemoteAddr())
	_ = raw.SetDeadline(time.Now().Add(m.refuseWithin))
	conn, p, err := m.detect(raw)
	switch {
	case err != nil:
	case p == HTTP:
		answerHTTP(conn, "503 Service Unavailable\r\nRetry-After: 1", "application/problem+json",
			`{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"`+fullMessage+`"}`+"\n")
	case p == RESP:
		// These are Redis's words, which clients recognize.
		if _, err := io.WriteString(conn, "-ERR max number of clients reached\r\n"); err == nil {
			Linger(conn)
		}
	}
	_ = conn.Close()
}

// refuseHTTP answers HTTP with an error, if possible.
func refuseHTTP(conn net.Conn, why string) {
	answerHTTP(conn, "400 Bad Request", "text/plain; charset=utf-8", "firn: "+why+"\n")
}

// answerHTTP answers HTTP and closes the sending half.
func answerHTTP(conn net.Conn, status, media, body string) {
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: %s\r\nConnection: close\r\nContent-Length: "+
		"%d\r\n\r\n%s", status, media, len(body), body); err == nil {
		Linger(conn)
	}
}
