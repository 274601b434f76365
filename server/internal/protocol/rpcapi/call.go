package rpcapi

import (
	"context"
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
	// maxFields is how many fields of metadata a call may have: in two bytes,
	// the header block of a call refers to one that costs 200.
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
	// maxControls otherwise: those that estimate the bandwidth send a PING for
	// each burst that they read, over 1,000 a second on a fast network, and
	// SETTINGS when they raise their window.
	maxSettings   = 32
	maxControls   = 200
	controlWindow = 10 * time.Second
)

// A call is one whose header has arrived.
type call struct {
	conn     *meteredConn
	creds    *auth.Credentials
	ctx      context.Context
	cancel   context.CancelFunc
	begun    time.Time
	reserved int64 // bytes for its long answer; used by its handler alone

	// Guarded by conn.mu.
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
	k := &call{conn: m, public: isPublic(info.FullMethodName),
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
		return ctx, &callError{Problem: service.Problemf(service.BadParameter,
			"the call has %d fields of metadata: the limit is %d", fields, maxFields)}
	}
	if k.public {
		listen.Charge(m.Conn, publicCost)
	}
	err := m.admit(k, s.front.Allow(k.creds, auth.Connect, "") == nil)
	if err != nil {
		k.cancel()
	}
	return ctx, err
}

// messageArrived records that the first message of a call has arrived.
func (k *call) messageArrived() {
	k.conn.mu.Lock()
	defer k.conn.mu.Unlock()
	k.arrived = true
	if !k.conn.hasAuth && !k.public {
		listen.MarkKnown(k.conn.Conn)
	}
}

// handlerEnded records that the handler of a call ends.
func (k *call) handlerEnded(well bool) {
	// Do not cancel the context here: gRPC does so when the status is sent, and
	// a waiting Recv would send a status of its own.
	k.conn.mu.Lock()
	defer k.conn.mu.Unlock()
	if k.reserved > 0 {
		k.conn.release(k.reserved) // there is no answer
	}
	k.conn.forget(k)
	if well {
		k.conn.lastSuccess = time.Now()
	}
}
