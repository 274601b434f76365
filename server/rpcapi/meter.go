package rpcapi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// Limits of what a connection holds that its client does not read. gRPC takes
// an answer as a whole, and the call has ended for it then, whatever becomes of
// the bytes. With maxStreams answers of the most IDs, one connection could hold
// hundreds of MiB. So a call for many IDs waits, before it takes them, until
// the answers before it have gone out.
const (
	manyOctets = 16 << 10 // of an answer that counts as long
	maxUnread  = 4        // answers that have not gone out, with which no long one is begun
	maxLong    = 4        // long ones that are begun at the same time
)

// A meter sees from the frames of a connection which of its streams are open,
// and closes the connection if its client holds it up. It is safe for use by
// many goroutines at once.
type meter struct {
	net.Conn
	in, out frames // each is used by one goroutine, as Read and Write are
	limits  meterLimits

	mu      sync.Mutex          // guards what follows
	open    map[uint32]struct{} // streams whose last frame has neither come nor gone
	last    uint32              // the stream begun last
	running int                 // calls that the server works on
	long    int                 // of these, those that make a long answer
	line    []chan struct{}     // of those that wait to begin one, in order; closed when it may

	held   int       // bytes of messages of Stream that have not gone out
	queue  []*outbox // of streams that wait for that to become less
	stalls int       // streams that ended because their client did not read them
	moved  time.Time // when a frame of an answer went out, or began to wait

	watched
}

// meterLimits are those of a connection; zero values mean none.
type meterLimits struct {
	read  time.Duration // for a call's message to come, and for a client to say who it is
	write time.Duration // for a piece of an answer to go out
	known bool          // no client has to say who it is
	calls *atomic.Int64 // open streams of all connections; nil if nobody counts them
}

func newMeter(conn net.Conn, l meterLimits) *meter {
	m := &meter{Conn: conn, open: make(map[uint32]struct{}), limits: l}
	m.in.skip = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if conn != nil && l.read > 0 {
		m.watch()
	}
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
		_ = m.Close() // gRPC would go on reading
	}
	return n, err
}

// Types of frames of HTTP/2, and the flag of a stream's last one.
const (
	frameData      = 0
	frameHeaders   = 1
	frameReset     = 3
	flagEndStream  = 1
	frameHeaderLen = 9
)

// received sees the head of a frame of the client.
func (m *meter) received(kind, _ byte, stream uint32) {
	switch kind {
	case frameHeaders:
		m.mu.Lock()
		defer m.mu.Unlock()
		if stream > m.last { // else they are its trailers
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

// sent sees the head of a frame of the server. Frames of a stream are sent in
// order, so its answer has gone out when its last one does.
func (m *meter) sent(kind, flags byte, stream uint32) {
	if kind == frameData || kind == frameHeaders {
		m.mu.Lock()
		m.moved = time.Now()
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

// tally counts streams that are opened and closed.
func (m *meter) tally(n int) {
	if m.limits.calls != nil {
		m.limits.calls.Add(int64(n))
	}
}

// change lets those begin a long answer that may by now. Its caller holds m.mu.
func (m *meter) change() {
	for len(m.line) > 0 && m.mayBegin() {
		m.long++
		close(m.line[0])
		m.line = m.line[1:]
	}
}

// mayBegin reports whether a long answer may be begun. Its caller holds m.mu.
func (m *meter) mayBegin() bool { return m.unread() < maxUnread && m.long < maxLong }

// unread is how many answers have not gone out as a whole, or calls have not
// come as a whole. Its caller holds m.mu.
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

// errUnread says that no long answer may be begun as the client does not read
// those before it.
var errUnread = errors.New("earlier answers are not read")

// begin waits until a long answer may be begun, which ends with done: in the
// order of the calls. m may be nil.
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
		return done, nil // in that moment
	}
	m.line = slices.Delete(m.line, at, at+1)
	if m.unread() >= maxUnread {
		return nil, fmt.Errorf("%w: %w", errUnread, ctx.Err())
	}
	return nil, ctx.Err()
}

// frames reads the heads of frames from a stream of bytes.
type frames struct {
	head [frameHeaderLen]byte
	have int // bytes of head
	skip int // bytes until the next head
}

// parse reads the next bytes.
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

// A caller is what is known of the other end of a connection.
type caller struct {
	credentials.TLSInfo // zero without TLS
	secure              bool
	meter               *meter
}

// AuthType says how the other end is known.
func (c caller) AuthType() string {
	if c.secure {
		return c.TLSInfo.AuthType()
	}
	return "none"
}

// callerOf is who has made a call.
func callerOf(ctx context.Context) caller {
	if p, ok := peer.FromContext(ctx); ok {
		if c, ok := p.AuthInfo.(caller); ok {
			return c
		}
	}
	return caller{}
}
