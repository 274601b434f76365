package rpcapi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// Limits of the memory for answers that a client does not read. gRPC accepts an
// answer as a whole and then regards the call as ended, whatever happens to the
// bytes. With maxStreams answers of the most IDs, one connection could hold
// hundreds of MiB. So a call for many IDs waits, before it takes them, until
// earlier answers have been sent.
const (
	manyOctets = 16 << 10 // size of a long answer
	maxUnread  = 4        // unsent answers at which no long one is begun
	maxLong    = 4        // long answers in progress at the same time
)

// A meter reads the frames of a connection to see which streams are open, and
// closes the connection if its client blocks it. It is safe for concurrent use.
type meter struct {
	net.Conn
	in, out frames // each is used by one goroutine, like Read and Write
	limits  meterLimits

	mu      sync.Mutex          // guards the fields below
	open    map[uint32]struct{} // streams whose last frame was neither received nor sent
	last    uint32              // the newest stream
	running int                 // calls in progress
	long    int                 // of these, calls with a long answer
	line    []chan struct{}     // calls that wait to begin one, in order; closed when they may

	held   int       // bytes reserved for messages of Stream
	booked int       // bytes of totals.held
	unsent int       // bytes of these in messages that gRPC has not sent
	queue  []*outbox // of streams that wait for room
	stalls int       // streams that ended because the client did not read them
	moved  time.Time // when a frame of an answer was sent, or began to wait

	watched
}

// meterLimits are the limits of a connection; zero means no limit.
type meterLimits struct {
	read  time.Duration // for a call's message to arrive, and for a client to authenticate
	write time.Duration // for a piece of an answer to be sent
	known bool          // clients need not authenticate
	total *totals       // of all connections; nil if not counted
}

func newMeter(conn net.Conn, l meterLimits) *meter {
	m := &meter{Conn: conn, open: make(map[uint32]struct{}), limits: l}
	m.in.skip = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if conn != nil && l.read > 0 {
		m.watch()
	}
	l.total.add(m)
	return m
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.in.parse(b[:n], m.received)
	return n, err
}

func (m *meter) Write(b []byte) (int, error) {
	if m.limits.write > 0 {
		if err := m.Conn.SetWriteDeadline(time.Now().Add(m.limits.write)); err != nil {
			return 0, err
		}
	}
	n, err := m.Conn.Write(b)
	m.out.parse(b[:n], m.sent)
	if err != nil {
		_ = m.Close() // gRPC would keep reading
	}
	return n, err
}

// Types of HTTP/2 frames, and the flag of a stream's last one.
const (
	frameData      = 0
	frameHeaders   = 1
	frameReset     = 3
	frameSettings  = 4
	framePing      = 6
	flagEndStream  = 1
	flagAck        = 1
	frameHeaderLen = 9
	settingLen     = 6
)

// received handles the header of a frame from the client.
func (m *meter) received(kind, flags byte, stream uint32) {
	switch kind {
	case frameSettings, framePing:
		if flags&flagAck == 0 && (kind == frameSettings && m.in.skip > maxSettings*settingLen || m.tooManyControls()) {
			_ = m.Close()
		}
	case frameHeaders:
		m.mu.Lock()
		defer m.mu.Unlock()
		if stream > m.last { // otherwise these are trailers
			m.last = stream
			m.pace.began++
			if !m.closed {
				m.open[stream] = struct{}{}
				m.tally(1)
			}
		}
	case frameReset:
		m.end(stream)
		if m.tooManyResets() {
			_ = m.Close()
		}
	}
}

// sent handles the header of a frame from the server. The frames of a stream
// are sent in order, so the answer has been sent when its last frame has.
func (m *meter) sent(kind, flags byte, stream uint32) {
	if kind == frameData || kind == frameHeaders {
		m.mu.Lock()
		m.moved = time.Now()
		m.controls = 0
		m.mu.Unlock()
	}
	if kind == frameReset || flags&flagEndStream != 0 && (kind == frameHeaders || kind == frameData) {
		m.end(stream)
	}
}

func (m *meter) end(stream uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, open := m.open[stream]; open {
		delete(m.open, stream)
		m.tally(-1)
	}
	m.change()
}

// tally adds n to the number of open streams.
func (m *meter) tally(n int) {
	if m.limits.total != nil {
		m.limits.total.calls.Add(int64(n))
	}
}

// change lets waiting calls begin a long answer if they may. The caller holds
// m.mu.
func (m *meter) change() {
	for len(m.line) > 0 && m.mayBegin() {
		m.long++
		close(m.line[0])
		m.line = m.line[1:]
	}
}

// mayBegin reports whether a long answer may begin. The caller holds m.mu.
func (m *meter) mayBegin() bool { return m.unread() < maxUnread && m.long < maxLong }

// unread returns how many answers were not sent completely, or calls not
// received completely. The caller holds m.mu.
func (m *meter) unread() int { return len(m.open) - m.running }

// enter and leave count calls. m may be nil.
func (m *meter) enter() { m.count(1, 0) }
func (m *meter) leave() { m.count(-1, 0) }

func (m *meter) count(running, long int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unread() == 0 {
		m.moved = time.Now()
	}
	m.running += running
	m.long += long
	m.change()
}

// errUnread means that no long answer may begin because the client does not
// read earlier ones.
var errUnread = errors.New("earlier answers are not read")

// errFull means that all connections together hold too many unread answers.
var errFull = errors.New("the server holds too many answers that are not read")

// begin waits until a long answer may begin, in the order of the calls; done
// ends it. m may be nil.
func (m *meter) begin(ctx context.Context) (done func(), err error) {
	if m == nil {
		return func() {}, nil
	}
	done = func() { m.count(0, -1) }
	turn := make(chan struct{})
	m.mu.Lock()
	m.line = append(m.line, turn)
	m.change()
	m.mu.Unlock()
	select {
	case <-turn:
		return done, nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.Index(m.line, turn)
	if at < 0 {
		return done, nil // its turn came at this very moment
	}
	m.line = slices.Delete(m.line, at, at+1)
	if m.unread() >= maxUnread {
		return nil, fmt.Errorf("%w: %w", errUnread, ctx.Err())
	}
	return nil, ctx.Err()
}

// frames finds the headers of frames in a stream of bytes.
type frames struct {
	head [frameHeaderLen]byte
	have int // bytes of head so far
	skip int // bytes until the next header
}

// parse parses the next bytes. During each, skip is the size of the frame.
func (f *frames) parse(b []byte, each func(kind, flags byte, stream uint32)) {
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

// A caller describes the other end of a connection.
type caller struct {
	credentials.TLSInfo // zero without TLS
	secure              bool
	meter               *meter
}

// AuthType returns how the other end is authenticated.
func (c caller) AuthType() string {
	if c.secure {
		return c.TLSInfo.AuthType()
	}
	return "none"
}

// callerOf returns the caller of a call.
func callerOf(ctx context.Context) caller {
	if p, ok := peer.FromContext(ctx); ok {
		if c, ok := p.AuthInfo.(caller); ok {
			return c
		}
	}
	return caller{}
}
