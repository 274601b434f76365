package rpcapi

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/tap"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
)

// Limits of the work that a client can cause before and besides its calls.
const (
	// maxStrangers is how many concurrent calls unauthenticated clients may have
	// per connection: enough for health checks, and to read an error.
	maxStrangers = 4

	// maxTurnedAway is how many more calls may arrive in the life of a connection.
	// gRPC keeps a little of each until the connection ends.
	maxTurnedAway = 1000

	// With more than manyCalls open calls over all connections, each connection
	// may have fewCalls. A call costs about 12 KiB, and all connections with
	// maxStreams each would have a million.
	manyCalls = 2000
	fewCalls  = 4

	// A connection is closed if its client resets more than maxResets calls within
	// resetWindow, and more than half of all.
	maxResets   = 200
	resetWindow = 10 * time.Second

	// gRPC queues the answers to SETTINGS and PING, each with the whole frame. So a
	// connection is closed after a SETTINGS frame with more than maxSettings
	// settings, of which there are ten kinds, or after more than maxControls such
	// frames within controlWindow without an answer to a call in between. Real
	// clients exceed maxControls otherwise: while a stream is busy, those that
	// estimate the bandwidth send a PING for each burst that they read, over 1,000
	// a second on a fast network, and SETTINGS when they raise their window.
	maxSettings   = 32
	maxControls   = 20
	controlWindow = 10 * time.Second
)

// A call is one whose header has arrived.
type call struct {
	creds    *auth.Credentials
	ctx      context.Context
	cancel   context.CancelFunc
	begun    time.Time
	entered  bool // its interceptor is running
	stranger bool // its client is not authenticated, and the call is counted
	booked   int  // bytes reserved for its long answer
}

// A watched is what a meter knows about calls. It is guarded by meter.mu.
type watched struct {
	waiting    map[*call]struct{} // calls whose first message has not arrived
	strangers  int                // calls of unauthenticated clients
	turned     int                // calls beyond maxStrangers
	known      bool               // some call was authenticated
	since      time.Time          // when the connection began, or an authenticated call last succeeded
	timer      *time.Timer
	closed     bool
	controls   int // SETTINGS and PING since controlled, or since the last answer
	controlled time.Time
	pace       struct {
		since         time.Time
		began, resets int
	}
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	k, _ := ctx.Value(callKey{}).(*call)
	return k
}

// tap handles the header of a call before anything is allocated for its
// messages. It is called with a lock of the connection held.
func (s *Server) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	c := callerOf(ctx)
	k := &call{creds: sentIn(ctx, metadata.MD(info.Header).Get("authorization")), begun: time.Now()}
	known := s.c.Auth == nil || s.c.Auth.Allow(k.creds, auth.Anything, "") == nil
	if c.meter.crowded() {
		return ctx, fail(service.Busy, fmt.Sprintf("the server has more than %d open calls, so each connection may have only %d: set deadlines, or use more servers", manyCalls, fewCalls), time.Second)
	}
	ctx, k.cancel = context.WithCancel(context.WithValue(ctx, callKey{}, k))
	k.ctx = ctx
	if c.meter != nil && !c.meter.admit(k, known) {
		k.cancel()
		return ctx, fail(service.Unauthorized, "too many concurrent calls without a valid token: send one in the metadata, authorization: Bearer firn_…", 0)
	}
	return ctx, nil
}

// crowded reports whether the call that has just arrived is one too many for
// its connection. m may be nil.
func (m *meter) crowded() bool {
	if m == nil || m.limits.total == nil || m.limits.total.calls.Load() <= manyCalls {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.open) > fewCalls
}

// state returns the TLS state of the connection, or nil without TLS.
func (c caller) state() *tls.ConnectionState {
	if !c.secure {
		return nil
	}
	return &c.State
}

// admit registers a call, unless there are too many of unauthenticated clients.
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

// arrived records that the first message of a call has arrived. m and k may be
// nil.
func (m *meter) arrived(k *call) {
	if m == nil || k == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, k)
}

// entered and left record that the interceptor of a call begins and ends. m and
// k may be nil.
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
	// Do not cancel the context here: gRPC does so when the status is sent, and a
	// waiting Recv would send a status of its own.
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(k)
	if well {
		m.since = time.Now()
	}
}

// forget removes a call. The caller holds m.mu.
func (m *meter) forget(k *call) {
	delete(m.waiting, k)
	if k.stranger {
		k.stranger = false
		m.strangers--
	}
}

// watch checks the connection regularly until it is closed.
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

// look ends calls whose message does not arrive, and reports whether to close
// the connection: its client has not authenticated, or does not read its
// answers. The caller holds m.mu.
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
	m.book(-m.booked) // gRPC drops what it has not sent
	m.closed = true
	m.tally(-len(m.open))
	clear(m.open)
	if m.timer != nil {
		m.timer.Stop()
	}
	m.mu.Unlock()
	m.limits.total.remove(m)
	if m.Conn == nil {
		return nil
	}
	return m.Conn.Close()
}

// tooManyResets records that the client has reset a call, and reports whether
// it does little else.
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

// tooManyControls records that the client has sent SETTINGS or a PING, and
// reports whether it sends too many.
func (m *meter) tooManyControls() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); m.controls == 0 || now.Sub(m.controlled) > controlWindow {
		m.controlled, m.controls = now, 0
	}
	m.controls++
	return m.controls > maxControls
}
