package listen

import (
	"encoding/binary"
	"io"
	"net"
	"time"
)

// What is spent on connections that are too many.
const (
	// maxRefusals is how many are refused at the same time. More wait in the
	// system's queue.
	maxRefusals = 64

	// refuseTimeout is how long a refusal may take, with its TLS handshake.
	refuseTimeout = time.Second

	// refusedEvery is how often the log tells of them at most, and of connections
	// that the system does not give.
	refusedEvery = 10 * time.Second
)

// full is what is said to who is too many.
const full = "too many connections: the server has as many as --max-connections allows; try again later, or ask another server"

// admit gives a connection one of the slots, or has it refused where there is
// none. It waits only where as many are being refused as can be. It reports
// false when the Mux is closing.
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

// begin starts what is done with a connection that has just come.
func (m *Mux) begin(c *limited, do func(*limited)) bool {
	if !m.greet(c) {
		return false
	}
	go do(c)
	return true
}

// turnAway tells a connection in its own protocol that it is one too many.
func (m *Mux) turnAway(raw *limited) {
	defer m.hellos.Done()
	defer func() { <-m.refusals }()
	m.refused.Add(1)
	if now := time.Now().UnixNano(); now-m.warned.Load() > int64(refusedEvery) {
		m.warned.Store(now)
		m.c.Log.Warn("connections are refused: there are as many as may be", "limit", cap(m.slots), "peer", raw.RemoteAddr())
	}
	_ = raw.SetDeadline(time.Now().Add(min(refuseTimeout, m.c.Hello)))
	if conn, p, err := m.tell(raw); err == nil {
		switch p {
		case HTTP:
			answer(conn, "503 Service Unavailable\r\nRetry-After: 1", "application/problem+json",
				`{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"`+full+`"}`+"\n")
		case RESP:
			// These are Redis' words, which clients know.
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

// Types of frames of HTTP/2, and their flags.
const (
	frameHeaders  = 1
	frameSettings = 4
	framePing     = 6
	frameGoAway   = 7

	flagAck        = 1
	flagEndStream  = 1
	flagEndHeaders = 4
)

// appendFrame appends a frame of HTTP/2.
func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	b = append(b, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

// appendField appends a header field to a header block, as a literal without
// index. Neither text may be longer than 126 bytes.
func appendField(b []byte, name, value string) []byte {
	b = append(b, 0, byte(len(name)))
	b = append(b, name...)
	b = append(b, byte(len(value)))
	return append(b, value...)
}

// refuseCalls answers the first call of a connection of gRPC with UNAVAILABLE,
// and says that no more are taken. A connection that was closed without an
// answer would be a mystery to its client, and one with GOAWAY alone would be
// made again at once.
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
		payload := make([]byte, min(size, 8)) // what PING has
		if _, err := io.ReadFull(in, payload); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, in, size-int64(len(payload))); err != nil {
			return
		}
		var out []byte
		switch {
		case kind == frameHeaders && stream == 0, kind == framePing && size != 8:
			return // that is no HTTP/2
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
