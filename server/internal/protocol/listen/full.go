package listen

import (
	"io"
	"time"
)

// Limits for refusing connections beyond Config.MaxConns.
const (
	// maxRefusals is how many are refused concurrently. More wait in the system's
	// queue.
	maxRefusals = 64

	// refuseTimeout is how long a refusal may take, with its TLS handshake.
	refuseTimeout = time.Second

	// refusedEvery is the minimum time between warnings about refused connections,
	// and about errors of accept.
	refusedEvery = 10 * time.Second
)

// full is the message to a refused client.
const full = "too many connections: the server has reached --max-connections; retry later, or use another server"

// admit gives a connection a slot, or has it refused without one. It waits
// only while the maximum number is being refused. It reports false when the Mux
// is closing.
func (m *Mux) admit(c *limited) bool {
	if m.slots == nil {
		return m.begin(c, m.hello)
	}
	select {
	case m.slots <- struct{}{}:
		c.slot = true
		return m.begin(c, m.hello)
	default:
	}
	select {
	case m.slots <- struct{}{}:
		c.slot = true
		return m.begin(c, m.hello)
	case m.refusals <- struct{}{}:
		return m.begin(c, m.turnAway)
	case <-m.ctx.Done():
		return false
	}
}

// begin starts do for a new connection.
func (m *Mux) begin(c *limited, do func(*limited)) bool {
	if !m.greet(c) {
		return false
	}
	go do(c)
	return true
}

// turnAway refuses a connection in its own protocol. A client of gRPC reports a
// connection that is closed as UNAVAILABLE, and reconnects by itself.
func (m *Mux) turnAway(raw *limited) {
	defer m.hellos.Done()
	defer func() { <-m.refusals }()
	m.refused.Add(1)
	if now := time.Now().UnixNano(); now-m.warned.Load() > int64(refusedEvery) {
		m.warned.Store(now)
		m.c.Log.Warn("refusing connections: --max-connections reached", "limit", cap(m.slots), "peer", raw.RemoteAddr())
	}
	_ = raw.SetDeadline(time.Now().Add(m.refuseWithin))
	if conn, p, err := m.detect(raw); err == nil {
		switch p {
		case HTTP:
			answer(conn, "503 Service Unavailable\r\nRetry-After: 1", "application/problem+json",
				`{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"`+full+`"}`+"\n")
		case RESP:
			// These are Redis's words, which clients recognize.
			if _, err := io.WriteString(conn, "-ERR max number of clients reached\r\n"); err == nil {
				Linger(conn)
			}
		}
		_ = conn.Close()
	}
	m.mu.Lock()
	delete(m.greeted, raw)
	m.mu.Unlock()
	_ = raw.Close()
}
