package rpcapi

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/tap"

	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/service"
)

// Limits of what a client can have a connection do before and beside its calls.
const (
	// maxStrangers is how many calls there can be at once whose client is not
	// known: enough for health checks, and for an error to be read.
	maxStrangers = 4

	// maxTurnedAway is how many more may come in the life of a connection. gRPC
	// keeps a little of each until the connection ends.
	maxTurnedAway = 1000

	// When there are manyCalls at once, over all connections, one has fewCalls and
	// no more. Each costs about 12 KiB, and with as many connections as there may
	// be, maxStreams of each would be a million.
	manyCalls = 10_000
	fewCalls  = 4

	// A connection whose client resets more than maxResets calls within
	// resetWindow, and more than half of all, is closed.
	maxResets   = 1000
	resetWindow = 10 * time.Second
)

// A call is one of which the head has come.
type call struct {
	creds    *auth.Credentials
	ctx      context.Context
	cancel   context.CancelFunc
	begun    time.Time
	entered  bool // its interceptor runs
	stranger bool // its client is not known, and it is counted
}

// What a meter knows of calls. It is guarded by meter.mu.
type watched struct {
	waiting   map[*call]struct{} // calls whose first message has not come
	strangers int                // calls of clients that are not known
	turned    int                // calls that were one too many of these
	known     bool               // some call was of a client that is known
	since     time.Time          // when the connection began, or a call of such a client ended well
	timer     *time.Timer
	closed    bool
	pace      struct {
		since         time.Time
		began, resets int
	}
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	k, _ := ctx.Value(callKey{}).(*call)
	return k
}

// tap sees the head of a call, before anything is kept for its messages. It is
// called with a lock of the connection held.
func (s *Server) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	c := callerOf(ctx)
	k := &call{creds: auth.FromHeader(metadata.MD(info.Header).Get("authorization"), c.state()), begun: time.Now()}
	known := s.c.Auth == nil || s.c.Auth.Allow(k.creds, auth.Anything, "") == nil
	if c.meter.crowded() {
		return ctx, fail(service.Busy, fmt.Sprintf("the server has %d calls at once: until there are fewer, a connection has %d; set deadlines, or use more servers", manyCalls, fewCalls), time.Second)
	}
	ctx, k.cancel = context.WithCancel(context.WithValue(ctx, callKey{}, k))
	k.ctx = ctx
	if c.meter != nil && !c.meter.admit(k, known) {
		k.cancel()
		return ctx, fail(service.Unauthorized, "too many calls without a known token at once: send one, as metadata authorization: Bearer firn_…", 0)
	}
	return ctx, nil
}

// crowded reports whether the call that has just come is one too many of its
// connection. m may be nil.
func (m *meter) crowded() bool {
	if m == nil || m.limits.calls == nil || m.limits.calls.Load() <= manyCalls {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.open) > fewCalls
}

// state is that of the connection, or nil without TLS.
func (c caller) state() *tls.ConnectionState {
	if !c.secure {
		return nil
	}
	return &c.State
}

// admit notes a call, unless there are too many whose client is not known.
func (m *meter) admit(k *call, known bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case known:
		m.known = true
	case m.strangers >= maxStrangers:
		if m.turned++; m.turned > maxTurnedAway {
			_ = m.Conn.Close()
		}
		return false
	default:
		m.strangers++
		k.stranger = true
	}
	if m.waiting == nil {
		m.waiting = make(map[*call]struct{})
	}
	m.waiting[k] = struct{}{}
	return true
}

// arrived notes that the first message of a call has come. m and k may be nil.
func (m *meter) arrived(k *call) {
	if m == nil || k == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, k)
}

// entered and left note that the interceptor of a call begins and ends. m and k
// may be nil.
func (m *meter) entered(k *call) {
	if m == nil || k == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k.entered = true
}

func (m *meter) left(k *call, well bool) {
	if m == nil || k == nil {
		return
	}
	// Its context is not cancelled here: gRPC does it when the status is sent, and
	// a Recv that waits would send one of its own.
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(k)
	if well {
		m.since = time.Now()
	}
}

// forget removes a call. Its caller holds m.mu.
func (m *meter) forget(k *call) {
	delete(m.waiting, k)
	if k.stranger {
		k.stranger = false
		m.strangers--
	}
}

// watch looks at the connection again and again until it is closed.
func (m *meter) watch() {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since, m.moved, m.known = now, now, m.limits.known
	every := min(m.limits.read, m.limits.write) / 2
	m.timer = time.AfterFunc(every, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.closed {
			return
		}
		if m.look(time.Now()) {
			_ = m.Conn.Close()
			return
		}
		m.timer.Reset(every)
	})
}

// look ends calls whose message does not come, and reports whether the
// connection is to be closed: its client has not said who it is, or does not
// read its answers. Its caller holds m.mu.
func (m *meter) look(now time.Time) (end bool) {
	pending := 0
	for k := range m.waiting {
		switch {
		case k.ctx.Err() != nil && !k.entered:
			m.forget(k) // it ended before its interceptor began
		case now.Sub(k.begun) >= m.limits.read:
			k.cancel()
			if k.entered {
				delete(m.waiting, k)
			} else {
				m.forget(k)
			}
		case !k.entered:
			pending++
		}
	}
	unread := m.unread() > pending || m.held > 0
	return !m.known && now.Sub(m.since) >= m.limits.read || unread && now.Sub(m.moved) >= m.limits.write
}

// Close closes the connection.
func (m *meter) Close() error {
	m.mu.Lock()
	m.closed = true
	m.tally(-len(m.open))
	clear(m.open)
	if m.timer != nil {
		m.timer.Stop()
	}
	m.mu.Unlock()
	if m.Conn == nil {
		return nil
	}
	return m.Conn.Close()
}

// tooManyResets notes that the client has reset a call, and reports whether it
// does little else.
func (m *meter) tooManyResets() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &m.pace
	if now := time.Now(); now.Sub(p.since) > resetWindow {
		p.since, p.began, p.resets = now, 0, 0
	}
	p.resets++
	return p.resets > maxResets && 2*p.resets > p.began
}
