// Package rpcapi serves IDs over gRPC: the services firn.v1.IDs and
// firn.v1.Sequencers of server/proto, health and reflection.
//
// It makes no IDs itself and knows no store: it calls package service.
package rpcapi

import (
	"context"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
)

// Config is the configuration of a Server. Only Front.Backend is required.
type Config struct {
	// Front is what calls need. Its Limits bound the number of IDs, the size of
	// the message and of the headers, and the time for the first bytes of a new
	// connection. The size of an answer is limited only by the number of IDs.
	Front service.Front

	// Options are further options of the gRPC server, such as a stats handler
	// for traces.
	Options []grpc.ServerOption
}

// Limits of a connection and a call.
const (
	maxStreams   = 100              // concurrent streams of a connection; each may hold an unread response
	minPingEvery = 5 * time.Second  // minimum time between pings of a client
	pingEvery    = 30 * time.Second // the server's pings on a silent connection
	pingTimeout  = 20 * time.Second
)

// A Server answers gRPC. It must be made by NewServer, and is safe for
// concurrent use.
type Server struct {
	firnv1.UnimplementedIDsServer
	firnv1.UnimplementedSequencersServer
	front service.Front // with its defaults
	total totals
	grpc  *grpc.Server

	drained, stopped context.Context // done after Drain and Shutdown
	drain            context.CancelFunc
	stop             context.CancelCauseFunc
}

// NewServer makes a Server. It panics if c.Front has no Backend.
func NewServer(c Config) *Server {
	s := &Server{front: c.Front.WithDefaults(), total: totals{room: semaphore.NewWeighted(maxHeldAll)}}
	s.front.SendToken = "in the metadata, authorization: Bearer firn_…"
	s.drained, s.drain = context.WithCancel(context.Background())
	s.stopped, s.stop = context.WithCancelCause(context.Background())
	s.grpc = s.newGRPC(c.Options)
	return s
}

// newGRPC makes a gRPC server with further options.
func (s *Server) newGRPC(options []grpc.ServerOption) *grpc.Server {
	limits := s.front.Limits
	g := grpc.NewServer(append([]grpc.ServerOption{
		grpc.Creds(meteredCredentials{insecure.NewCredentials(), s}),
		grpc.InTapHandle(s.tap),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(limits.Body),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ReadBufferSize(readBuffer),
		grpc.MaxHeaderListSize(uint32(limits.Header)),
		grpc.WaitForHandlers(true),
		grpc.ConnectionTimeout(limits.Read),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingEvery, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: limits.Idle, Time: pingEvery,
			Timeout: pingTimeout}),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
	}, options...)...)
	firnv1.RegisterIDsServer(g, s)
	firnv1.RegisterSequencersServer(g, s)
	healthpb.RegisterHealthServer(g, &healthServer{server: s})
	reflection.Register(g)
	return g
}

// Serve serves the connections of a listener until Shutdown, and closes the
// listener.
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Drain makes the health service report that the server is about to stop. Calls
// and new connections are still served.
func (s *Server) Drain() { s.drain() }

// Shutdown closes the listeners, asks clients to reconnect, and ends watches of
// the health. Calls may finish until ctx is done, and are then ended. No call
// runs when it returns.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain()
	s.stop(&callError{Problem: service.Problemf(service.Draining, "the server is shutting down: call another one")})
	cut := context.AfterFunc(ctx, s.grpc.Stop)
	s.grpc.GracefulStop()
	if !cut() {
		return ctx.Err()
	}
	return nil
}

// meteredCredentials are the credentials of connections whose handshake is
// already done.
type meteredCredentials struct {
	credentials.TransportCredentials
	server *Server
}

func (c meteredCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	m := c.server.newMeteredConn(conn)
	m.checkRegularly()
	return m, m, nil
}

// isPublic reports whether a service needs no authentication.
func isPublic(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.v1.Health/") || strings.HasPrefix(method, "/grpc.reflection.")
}

// unary and stream give a call its request ID and observe the result. Only
// public services have streams.
func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	handle grpc.UnaryHandler) (answer any, err error) {
	ctx = withRequestID(ctx)
	defer s.ended(ctx, info.FullMethod, time.Now(), &err)
	k := callOf(ctx)
	k.messageArrived()
	answer, err = handle(ctx, req) // each method authorizes the caller
	if message, ok := answer.(proto.Message); ok && err == nil && k.reserved > 0 {
		answer = k.conn.track(message, k.reserved)
		k.reserved = 0
	}
	return answer, err
}

func (s *Server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handle grpc.StreamHandler) (err error) {
	ctx := withRequestID(stream.Context())
	defer s.ended(ctx, info.FullMethod, time.Now(), &err)
	return handle(srv, identifiedStream{stream, ctx})
}

// withRequestID returns the context of a call with a request ID, which the
// header of the answer has too.
func withRequestID(ctx context.Context) context.Context {
	id := requestid.Values(metadata.ValueFromIncomingContext(ctx, requestid.Metadata))
	ctx = requestid.WithID(ctx, id[0])
	_ = grpc.SetHeader(ctx, metadata.MD{requestid.Metadata: id}) // fails only after the header was sent
	return ctx
}

// An identifiedStream is a stream with the context of its request ID.
type identifiedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s identifiedStream) Context() context.Context { return s.ctx }

func (s identifiedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		callOf(s.ctx).messageArrived()
	}
	return err
}

// ended is deferred for every call. As in net/http, a panic ends only its own
// call.
func (s *Server) ended(ctx context.Context, method string, begin time.Time, err *error) {
	if what := recover(); what != nil {
		s.front.Logger.ErrorContext(ctx, "call panicked", "method", method, "panic", what, "stack", string(debug.Stack()))
		*err = &callError{Problem: service.Problemf(service.Internal, "see the server's log")}
	}
	k, kind, took := callOf(ctx), kindOf(*err), time.Since(begin)
	if kind == service.Unauthorized && k.creds.OfCertificate() {
		k.conn.outdated.Store(true)
	}
	k.handlerEnded(*err == nil)
	if *err != nil && !isPublic(method) {
		*err = withRequest(*err, requestid.Of(ctx))
	}
	if !isPublic(method) {
		s.front.Observe(kind, took, 1)
	}
	if s.front.Logger.Enabled(ctx, slog.LevelDebug) {
		s.front.Logger.LogAttrs(ctx, slog.LevelDebug, "request", slog.String("protocol", "grpc"),
			slog.String("method", method),
			slog.String("status", status.Code(*err).String()), slog.Duration("took", took))
	}
}

// credsOf returns the credentials of a call.
func credsOf(ctx context.Context) *auth.Credentials {
	return callOf(ctx).creds // which cache the principal
}
