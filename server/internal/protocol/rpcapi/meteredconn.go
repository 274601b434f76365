package rpcapi

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/service"
)

// A meteredConn reads the frames of a connection to see which streams are open,
// and closes the connection if its client blocks it. It is safe for concurrent
// use.
type meteredConn struct {
	net.Conn
	in, out               frameScanner  // each is used by one goroutine, like Read and Write
	readLimit, writeLimit time.Duration // of service.Limits
	total                 *totals
	tls                   *tls.ConnectionState // nil without TLS
	hasAuth               bool                 // clients have to authenticate

	room *semaphore.Weighted // of maxHeld

	outdated atomic.Bool // its certificate was refused
	leaving  bool        // a GOAWAY was sent; used by Write alone

	mu       sync.Mutex          // guards the fields below
	open     map[uint32]struct{} // streams whose last frame was neither received nor sent
	last     uint32              // the newest stream
	held     int64               // bytes reserved for messages that gRPC has not sent
	lastSent time.Time           // when a frame of an answer was sent, or began to wait
	closed   bool

	calls         map[*call]struct{} // whose handlers have not ended
	authenticated bool               // some call was, or none needs to be
	lastSuccess   time.Time          // when a call last succeeded, or the connection began
	timer         *time.Timer
	controls      int // SETTINGS, PING and resets since controlsSince, or since the last answer
	controlsSince time.Time
}

func (s *Server) newMeteredConn(conn net.Conn) *meteredConn {
	m := &meteredConn{
		Conn: conn, readLimit: s.front.Limits.Read, writeLimit: s.front.Limits.Write, total: &s.total,
		tls: listen.StateOf(conn), hasAuth: s.front.Auth != nil, room: semaphore.NewWeighted(maxHeld),
		open: make(map[uint32]struct{}), lastSent: time.Now(),
		calls: make(map[*call]struct{}), authenticated: s.front.Auth == nil, lastSuccess: time.Now(),
	}
	m.in.skip = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	return m
}

func (m *meteredConn) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.in.scan(b[:n], m.received)
	return n, err
}

func (m *meteredConn) Write(b []byte) (int, error) {
	_ = m.Conn.SetWriteDeadline(time.Now().Add(m.writeLimit)) // fails only if Write does
	n, err := m.Conn.Write(b)
	m.out.scan(b[:n], m.sent)
	if err == nil && m.outdated.Load() && !m.leaving && m.out.isBetween() {
		m.leaving = true
		_, err = io.WriteString(m.Conn, goAway)
	}
	if err != nil {
		_ = m.Close() // gRPC would keep reading
	}
	return n, err
}

// goAway is the frame by which a client learns that it must make further calls
// over another connection; those under way are answered. gRPC sends it only to
// all connections, or by their age. It must not follow one of gRPC, which may
// name the last stream: no later GOAWAY may name a later one, and clients end
// all their calls if it does.
const goAway = "\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x7f\xff\xff\xff" + "\x00\x00\x00\x00"

// Types of HTTP/2 frames, and their flags.
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	framePing         = 6
	frameGoAway       = 7
	frameContinuation = 9
	flagEndStream     = 1
	flagAck           = 1
	flagEndHeaders    = 4
	frameHeaderLen    = 9
	settingLen        = 6
)

// received handles the header of a frame from the client.
func (m *meteredConn) received(kind, flags byte, stream uint32) {
	switch kind {
	case frameSettings, framePing, frameReset:
		if kind == frameReset {
			m.streamEnded(stream)
		} else if flags&flagAck != 0 {
			return
		}
		if kind == frameSettings && m.in.skip > maxSettings*settingLen || m.tooManyControls() {
			_ = m.Close()
		}
	case frameHeaders:
		m.mu.Lock()
		defer m.mu.Unlock()
		if stream > m.last && !m.closed { // otherwise these are trailers
			m.last = stream
			m.open[stream] = struct{}{}
			m.total.calls.Add(1)
			listen.Charge(m.Conn, callCost)
		}
	}
}

// sent handles the header of a frame from the server. The frames of a stream
// are sent in order, so the answer has been sent when its last frame has.
func (m *meteredConn) sent(kind, flags byte, stream uint32) {
	if kind == frameData || kind == frameHeaders {
		m.mu.Lock()
		m.lastSent = time.Now()
		m.controls = 0
		m.mu.Unlock()
	}
	switch {
	case kind == frameGoAway:
		m.leaving = true
	case kind == frameReset, flags&flagEndStream != 0 && (kind == frameHeaders || kind == frameData):
		m.streamEnded(stream)
	}
}

func (m *meteredConn) streamEnded(stream uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, open := m.open[stream]; open {
		delete(m.open, stream)
		m.total.calls.Add(-1)
		if len(m.open) == 0 && len(m.calls) == 0 {
			listen.Answered(m.Conn)
		}
	}
}

// Close closes the connection.
func (m *meteredConn) Close() error {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		m.total.room.Release(m.held) // gRPC drops what it has not sent
		m.total.calls.Add(-int64(len(m.open)))
		clear(m.open)
		if m.timer != nil {
			m.timer.Stop()
		}
	}
	m.mu.Unlock()
	return m.Conn.Close()
}

// A frameScanner finds the headers of frames in a stream of bytes.
type frameScanner struct {
	head [frameHeaderLen]byte
	have int // bytes of head so far
	skip int // bytes until the next header
}

// isBetween reports whether another frame may follow the bytes so far: they are
// whole frames, and whole header blocks.
func (f *frameScanner) isBetween() bool {
	kind, flags := f.head[3], f.head[4] // of the last frame
	inBlock := (kind == frameHeaders || kind == frameContinuation) && flags&flagEndHeaders == 0
	return f.skip == 0 && f.have == 0 && !inBlock
}

// scan scans the next bytes. During each, skip is the size of the frame.
func (f *frameScanner) scan(b []byte, each func(kind, flags byte, stream uint32)) {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(b))
			f.skip -= n
			b = b[n:]
			continue
		}
		n := copy(f.head[f.have:], b)
		f.have += n
		b = b[n:]
		if f.have == frameHeaderLen {
			f.have = 0
			f.skip = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
			each(f.head[3], f.head[4], binary.BigEndian.Uint32(f.head[5:])&(1<<31-1))
		}
	}
}

// AuthType makes a meteredConn what gRPC knows about the other end of a
// connection.
func (*meteredConn) AuthType() string { return "none" }

// admit registers a call, unless there are too many.
func (m *meteredConn) admit(k *call, known bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.total.calls.Load() > manyCalls && len(m.open) > fewCalls {
		return &callError{Problem: service.Problemf(service.Busy, "the server has more than %d open calls, so each "+
			"connection may have only %d: set deadlines, or use more servers", manyCalls, fewCalls)}
	}
	if known {
		m.authenticated = true
		if m.hasAuth {
			listen.MarkKnown(m.Conn)
		}
	}
	m.calls[k] = struct{}{}
	return nil
}

// forget removes a call. The caller holds m.mu.
func (m *meteredConn) forget(k *call) {
	if !m.hasUnread() {
		m.lastSent = time.Now() // its answer begins to wait
	}
	delete(m.calls, k)
}

// hasUnread reports whether answers have not been sent completely. The caller
// holds m.mu.
func (m *meteredConn) hasUnread() bool { return len(m.open) > len(m.calls) || m.held > 0 }

// checkRegularly checks the connection regularly until it is closed.
func (m *meteredConn) checkRegularly() {
	m.mu.Lock()
	defer m.mu.Unlock()
	every := min(m.readLimit, m.writeLimit) / 2
	m.timer = time.AfterFunc(every, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.closed {
			return
		}
		if m.endLateCalls(time.Now()) {
			_ = m.Conn.Close()
			return
		}
		m.timer.Reset(every)
	})
}

// endLateCalls ends calls whose message does not arrive. It reports whether to
// close the connection: its client has not authenticated, or does not read its
// answers. The caller holds m.mu.
func (m *meteredConn) endLateCalls(now time.Time) (end bool) {
	for k := range m.calls {
		switch {
		case k.ctx.Err() != nil:
			m.forget(k) // its handler may never begin
		case !k.arrived && now.Sub(k.begun) >= m.readLimit:
			k.cancel()
		}
	}
	pause := now.Sub(m.lastSent)
	return !m.authenticated && now.Sub(m.lastSuccess) >= m.readLimit || m.hasUnread() && pause >= m.writeLimit ||
		m.held > 0 && pause >= maxPause && m.total.waiting.Load() > 0
}

// tooManyControls records that the client has sent SETTINGS, a PING or a reset,
// and reports whether it sends too many.
func (m *meteredConn) tooManyControls() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); m.controls == 0 || now.Sub(m.controlsSince) > controlWindow {
		m.controlsSince, m.controls = now, 0
	}
	m.controls++
	return m.controls > maxControls
}
