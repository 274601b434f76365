package listen

import (
	"encoding/binary"
	"io"
	"net"
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

// turnAway refuses a connection in its own protocol.
func (m *Mux) turnAway(raw *limited) {
	defer m.hellos.Done()
	defer func() { <-m.refusals }()
	m.refused.Add(1)
	if now := time.Now().UnixNano(); now-m.warned.Load() > int64(refusedEvery) {
		m.warned.Store(now)
		m.c.Log.Warn("refusing connections: --max-connections reached", "limit", cap(m.slots), "peer", raw.RemoteAddr())
	}
	_ = raw.SetDeadline(time.Now().Add(m.refuseWithin))
	if conn, p, err := m.tell(raw); err == nil {
		switch p {
		case HTTP:
			answer(conn, "503 Service Unavailable\r\nRetry-After: 1", "application/problem+json",
				`{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"`+full+`"}`+"\n")
		case RESP:
			// These are Redis's words, which clients recognize.
			if _, err := io.WriteString(conn, "-ERR max number of clients reached\r\n"); err == nil {
				linger(conn)
			}
		case GRPC:
			refuseCalls(conn)
		}
		_ = conn.Close()
	}
	m.mu.Lock()
	delete(m.greeted, raw)
	m.mu.Unlock()
	_ = raw.Close()
}

// Types of HTTP/2 frames, and their flags.
const (
	frameHeaders  = 1
	frameSettings = 4
	framePing     = 6
	frameGoAway   = 7

	flagAck        = 1
	flagEndStream  = 1
	flagEndHeaders = 4
)

// appendFrame appends an HTTP/2 frame.
func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	b = append(b, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

// appendField appends a header field to a header block, as a literal without
// index. Neither text may exceed 126 bytes.
func appendField(b []byte, name, value string) []byte {
	b = append(b, 0, byte(len(name)))
	b = append(b, name...)
	b = append(b, byte(len(value)))
	return append(b, value...)
}

// refuseCalls answers the first call of a gRPC connection with UNAVAILABLE, and
// sends GOAWAY. A client could not explain a connection closed without an
// answer, and would reconnect at once after GOAWAY alone.
func refuseCalls(conn net.Conn) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	if _, err := conn.Write(appendFrame(nil, frameSettings, 0, 0, nil)); err != nil {
		return
	}
	in := io.LimitReader(conn, 64<<10)
	if _, err := io.CopyN(io.Discard, in, int64(len(preface))); err != nil {
		return
	}
	var head [9]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])&(1<<31-1)
		payload := make([]byte, min(size, 8)) // the payload of PING
		if _, err := io.ReadFull(in, payload); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, in, size-int64(len(payload))); err != nil {
			return
		}
		var out []byte
		switch {
		case kind == frameHeaders && stream == 0, kind == framePing && size != 8:
			return // not HTTP/2
		case kind == frameSettings && flags&flagAck == 0:
			out = appendFrame(nil, frameSettings, flagAck, 0, nil)
		case kind == framePing && flags&flagAck == 0:
			out = appendFrame(nil, framePing, flagAck, 0, payload)
		case kind == frameHeaders:
			block := []byte{0x88} // :status 200, of the static table
			block = appendField(block, "content-type", "application/grpc")
			block = appendField(block, "grpc-status", "14")
			block = appendField(block, "grpc-message", full)
			out = appendFrame(nil, frameHeaders, flagEndStream|flagEndHeaders, stream, block)
			last := binary.BigEndian.AppendUint32(nil, stream)
			last = binary.BigEndian.AppendUint32(last, 0) // no error
			out = appendFrame(out, frameGoAway, 0, 0, last)
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
		if kind == frameHeaders {
			linger(conn)
			return
		}
	}
}
