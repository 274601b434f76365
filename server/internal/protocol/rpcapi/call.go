package rpcapi

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/service"
)

// Limits of the work that a client can cause before and besides its calls.
const (
	// maxFields is how many fields of metadata a call may have: in two bytes, the
	// header block of a call refers to one that costs 200.
	maxFields = 100

	// callCost and publicCost are what a stranger's call costs, and one of a
	// service that needs no authentication in addition: gRPC queues 64 KiB of
	// answers that the client does not read.
	callCost   = 12 << 10
	publicCost = 64 << 10

	// readBuffer is the size of the buffer of each connection, of which gRPC's
	// own is 32 KiB: requests are small, and so should idle connections be.
	readBuffer = 8 << 10

	// manyCalls is the number of open calls over all connections above which
	// each connection may have only fewCalls. A call costs about 12 KiB, and
	// all connections with maxStreams each would have a million.
	manyCalls = 2000
	fewCalls  = 4

	// maxSettings, maxControls and controlWindow limit what gRPC keeps: it
	// queues the answers to SETTINGS and PING, each with the whole frame, and
	// keeps a little of each call that is reset. So a connection is closed
	// after a SETTINGS frame with more than maxSettings settings, of which
	// there are ten kinds, or after more than maxControls such frames within
	// controlWindow without an answer to a call in between. Real clients exceed
	// maxControls otherwise: those that estimate the
	// bandwidth send a PING for each burst that they read, over 1,000 a second
	// on a fast network, and SETTINGS when they raise their window.
	maxSettings   = 32
	maxControls   = 200
	controlWindow = 10 * time.Second
)

// A call is one whose header has arrived.
type call struct {
	meter    *meteredConn
	creds    *auth.Credentials
	ctx      context.Context
	cancel   context.CancelFunc
	begun    time.Time
	reserved int64 // bytes for its long answer; used by its handler alone

	// Guarded by meter.mu.
	arrived bool // its first message has
	public  bool // it needs no authentication
}

type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// tap handles the header of a call before anything is allocated for its
// messages. It is called with a lock of the connection held.
func (s *Server) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	p, _ := peer.FromContext(ctx)
	m := p.AuthInfo.(*meteredConn)
	k := &call{meter: m, public: isPublic(info.FullMethodName),
		creds: auth.FromHeader(metadata.MD(info.Header).Get("authorization"), m.tls), begun: time.Now()}
	k.creds.Address = p.Addr.String()
	ctx, k.cancel = context.WithCancel(context.WithValue(ctx, callKey{}, k))
	k.ctx = ctx
	fields := 0
	for _, values := range info.Header {
		fields += len(values)
	}
	if fields > maxFields {
		k.cancel()
		return ctx, fail(service.BadParameter, fmt.Sprintf("the call has %d fields of metadata: the limit is %d", fields,
			maxFields), 0)
	}
	if k.public {
		listen.Charge(m.Conn, publicCost)
	}
	err := m.admit(k, s.config.Allow(k.creds, auth.Anything, "") == nil)
	if err != nil {
		k.cancel()
	}
	return ctx, err
}

// admit registers a call, unless there are too many.
func (m *meteredConn) admit(k *call, known bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.total.calls.Load() > manyCalls && len(m.open) > fewCalls {
		return fail(service.Busy, fmt.Sprintf("the server has more than %d open calls, so each connection may have only %d: "+
			"set deadlines, or use more servers", manyCalls, fewCalls), time.Second)
	}
	if known {
		m.authenticated = true
		if m.hasAuth {
			listen.Known(m.Conn)
		}
	}
	m.calls[k] = struct{}{}
	return nil
}

// arrive records that the first message of a call has arrived.
func (k *call) arrive() {
	k.meter.mu.Lock()
	defer k.meter.mu.Unlock()
	k.arrived = true
	if !k.meter.hasAuth && !k.public {
		listen.Known(k.meter.Conn)
	}
}

// leave records that the handler of a call ends.
func (k *call) leave(well bool) {
	// Do not cancel the context here: gRPC does so when the status is sent, and a
	// waiting Recv would send a status of its own.
	k.meter.mu.Lock()
	defer k.meter.mu.Unlock()
	if k.reserved > 0 {
		k.meter.unreserve(k.reserved) // there is no answer
	}
	k.meter.forget(k)
	if well {
		k.meter.lastSuccess = time.Now()
	}
}

// forget removes a call. The caller holds m.mu.
func (m *meteredConn) forget(k *call) {
	if !m.unread() {
		m.lastSent = time.Now() // its answer begins to wait
	}
	delete(m.calls, k)
}

// unread reports whether answers have not been sent completely. The caller
// holds m.mu.
func (m *meteredConn) unread() bool { return len(m.open) > len(m.calls) || m.held > 0 }

// watch checks the connection regularly until it is closed.
func (m *meteredConn) watch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	every := min(m.readLimit, m.writeLimit) / 2
	m.timer = time.AfterFunc(every, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.closed {
			return
		}
		if m.expire(time.Now()) {
			_ = m.Conn.Close()
			return
		}
		m.timer.Reset(every)
	})
}

// expire ends calls whose message does not arrive. It reports whether to close
// the connection: its client has not authenticated, or does not read its
// answers. The caller holds m.mu.
func (m *meteredConn) expire(now time.Time) (end bool) {
	for k := range m.calls {
		switch {
		case k.ctx.Err() != nil:
			m.forget(k) // its handler may never begin
		case !k.arrived && now.Sub(k.begun) >= m.readLimit:
			k.cancel()
		}
	}
	pause := now.Sub(m.lastSent)
	return !m.authenticated && now.Sub(m.lastSuccess) >= m.readLimit || m.unread() && pause >= m.writeLimit ||
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
