// Package rpcapi serves IDs over gRPC: the services firn.v1.IDs and
// firn.v1.Sequencers of server/proto, health and reflection.
//
// It makes no IDs itself and knows no store: it calls package service.
package rpcapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
)

// Config is the configuration of a Server. Only the Backend is required.
type Config struct {
	// Backend finds the sequencers.
	Backend service.Backend

	// Limit is how long a call may wait for its IDs, unless its deadline is
	// earlier; 0 means service.DefaultLimit.
	Limit time.Duration

	// Limits bound calls: the number of IDs, the size of the message and of the
	// headers, and the time for the first bytes of a new connection. Zero values
	// mean the same as for HTTP. The size of an answer is limited only by the
	// number of IDs.
	Limits service.Limits

	// Auth decides what each client may do; nil allows everything.
	Auth auth.Authorizer

	// Observe is called for every call, with the kind of problem and the duration.
	// nil is allowed.
	Observe func(k service.Kind, d time.Duration)

	// Logger receives the server's own failures, and every call at level debug; nil
	// discards them. The context of a line has the request ID, see package
	// requestid.
	Logger *slog.Logger

	// Options are further options of the gRPC server, such as a stats handler for
	// traces.
	Options []grpc.ServerOption
}

// Limits of a connection and a call.
const (
	maxStreams  = 100              // concurrent streams of a connection; each may hold an unread response
	pingLeast   = 5 * time.Second  // minimum time between pings of a client
	pingEvery   = 30 * time.Second // the server's pings on a silent connection
	pingTimeout = 20 * time.Second
)

// A Server answers gRPC. It must be made by NewServer, and is safe for
// concurrent use.
type Server struct {
	firnv1.UnimplementedIDsServer
	firnv1.UnimplementedSequencersServer
	c     Config
	h     healthy
	total totals
	grpc  *grpc.Server

	drained, stopped context.Context // done after Drain and Shutdown
	drain            context.CancelFunc
	stop             context.CancelCauseFunc
}

// NewServer makes a Server. It panics if c has no Backend.
func NewServer(c Config) *Server {
	if c.Backend == nil {
		panic("rpcapi: NewServer needs a Config with a Backend")
	}
	c.Limit = cmp.Or(c.Limit, service.DefaultLimit)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Limits = c.Limits.WithDefaults()
	s := &Server{c: c, total: totals{room: semaphore.NewWeighted(maxHeldAll)}}
	s.drained, s.drain = context.WithCancel(context.Background())
	s.stopped, s.stop = context.WithCancelCause(context.Background())
	s.h = healthy{s: s}
	s.grpc = s.newGRPC()
	return s
}

// newGRPC makes a gRPC server.
func (s *Server) newGRPC() *grpc.Server {
	c := s.c
	g := grpc.NewServer(append([]grpc.ServerOption{
		grpc.Creds(handshaken{insecure.NewCredentials(), s}),
		grpc.InTapHandle(s.tap),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(c.Limits.Body),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(uint32(c.Limits.Header)),
		grpc.WaitForHandlers(true),
		grpc.ConnectionTimeout(c.Limits.Read),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingLeast, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: c.Limits.Idle, Time: pingEvery, Timeout: pingTimeout}),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
	}, c.Options...)...)
	firnv1.RegisterIDsServer(g, s)
	firnv1.RegisterSequencersServer(g, s)
	healthpb.RegisterHealthServer(g, &s.h)
	reflection.Register(g)
	return g
}

// Serve serves the connections of a listener until Shutdown, and closes the
// listener.
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Drain makes the health service report that the server is about to stop. Calls
// and new connections are still served.
func (s *Server) Drain() { s.drain() }

// Shutdown closes the listeners, asks clients to reconnect, and ends streams
// after their current message. Calls may finish until ctx is done, and are then
// ended. No call runs when it returns.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain()
	s.stop(fail(service.Draining, "the server is shutting down: call another one", 0))
	cut := context.AfterFunc(ctx, s.grpc.Stop)
	s.grpc.GracefulStop()
	if !cut() {
		return ctx.Err()
	}
	return nil
}

// handshaken are the credentials of connections whose handshake is already
// done.
type handshaken struct {
	credentials.TransportCredentials
	s *Server
}

func (h handshaken) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	m := h.s.newMeter(conn)
	m.watch()
	return m, m, nil
}

// isPublic reports whether a service needs no authentication.
func isPublic(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.v1.Health/") || strings.HasPrefix(method, "/grpc.reflection.")
}

// unary and stream give a call its request ID, authorize the caller and observe
// the result.
func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
	ctx = withRequestID(ctx)
	defer s.ended(ctx, info.FullMethod, time.Now(), &err)
	k := callOf(ctx)
	k.arrive()
	answer, err = handle(ctx, req) // each method authorizes the caller
	if message, ok := answer.(proto.Message); ok && err == nil && k.booked > 0 {
		answer = k.m.track(message, proto.Size(message), k.booked, func() {})
		k.booked = 0
	}
	return answer, err
}

func (s *Server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	ctx := withRequestID(stream.Context())
	defer s.ended(ctx, info.FullMethod, time.Now(), &err)
	if !isPublic(info.FullMethod) { // before the first message, which may never arrive
		if err := s.check(ctx, auth.Anything, ""); err != nil {
			return err
		}
	}
	return handle(srv, identifiedStream{stream, ctx})
}

// withRequestID returns the context of a call with a request ID, which the header
// of the answer has too.
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
	callOf(s.ctx).arrive()
	return err
}

// ended is deferred for every call. As in net/http, a panic ends only its own
// call.
func (s *Server) ended(ctx context.Context, method string, begin time.Time, err *error) {
	if what := recover(); what != nil {
		s.c.Logger.ErrorContext(ctx, "call panicked", "method", method, "panic", what, "stack", string(debug.Stack()))
		*err = fail(service.Internal, "see the server's log", 0)
	}
	callOf(ctx).leave(*err == nil)
	if *err != nil && !isPublic(method) {
		*err = withRequest(*err, requestid.Of(ctx))
	}
	took := time.Since(begin)
	if s.c.Observe != nil && !isPublic(method) {
		s.c.Observe(kindOf(*err), took)
	}
	if s.c.Logger.Enabled(ctx, slog.LevelDebug) {
		s.c.Logger.LogAttrs(ctx, slog.LevelDebug, "request", slog.String("protocol", "grpc"), slog.String("method", method),
			slog.String("status", status.Code(*err).String()), slog.Duration("took", took))
	}
}

// kindOf returns the kind of a call's error. If the client's deadline passes,
// the client usually leaves before the server notices, so both are Cancelled.
// Another error without a kind comes from gRPC: the message is invalid.
func kindOf(err error) service.Kind {
	if err == nil {
		return service.NoProblem
	}
	st := status.Convert(err)
	if c := st.Code(); c == codes.Canceled || c == codes.DeadlineExceeded {
		return service.Cancelled
	}
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			if k, ok := service.ParseKind(info.GetReason()); ok {
				return k
			}
		}
	}
	return service.BadParameter
}

// withRequest adds the request ID to the details of an error.
func withRequest(err error, id string) error {
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	if with, err := st.WithDetails(&errdetails.RequestInfo{RequestId: id}); err == nil {
		return with.Err()
	}
	return err
}

// check calls the Authorizer, if there is one.
func (s *Server) check(ctx context.Context, do auth.Action, name string) error {
	if s.c.Auth == nil {
		return nil
	}
	err := s.c.Auth.Allow(credsOf(ctx), do, name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auth.ErrForbidden):
		return fail(service.Forbidden, err.Error(), 0)
	}
	return fail(service.Unauthorized, err.Error()+": send a token in the metadata, authorization: Bearer firn_…", 0)
}

// credsOf returns the credentials of a call.
func credsOf(ctx context.Context) *auth.Credentials {
	return callOf(ctx).creds // which cache the principal
}

// fail returns the error of a call.
func fail(k service.Kind, text string, retry time.Duration) error {
	return failAs(k.Code(), k, text, retry)
}

// failAs is fail with another code than that of the kind.
func failAs(code codes.Code, k service.Kind, text string, retry time.Duration) error {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: k.String(), Domain: "firn"}}
	if retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	}
	return failWith(code, text, details...)
}

func failWith(code codes.Code, text string, details ...protoadapt.MessageV1) error {
	st := status.New(code, text)
	if with, err := st.WithDetails(details...); err == nil {
		return with.Err()
	}
	return st.Err()
}

// invalid returns an error for a field of a request, and badName one for a
// field that names a sequencer.
func invalid(field, text string) error      { return invalidAs(service.BadParameter, field, text) }
func badName(field string, err error) error { return invalidAs(service.BadName, field, err.Error()) }

func invalidAs(k service.Kind, field, text string) error {
	return failWith(k.Code(), text,
		&errdetails.ErrorInfo{Reason: k.String(), Domain: "firn"},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: field, Description: text}}})
}

// failed returns what a client sees of an error of a Backend or its sources.
func (s *Server) failed(ctx context.Context, err error) error {
	f := service.FaultOf(err, s.c.Limit, errors.Is(err, context.DeadlineExceeded))
	switch callOf(ctx).ctx.Err() { // the client's: the server's limit is another context
	case context.Canceled:
		return status.FromContextError(context.Canceled).Err()
	case context.DeadlineExceeded:
		return failAs(codes.DeadlineExceeded, f.Kind, "the call's deadline has passed: "+f.Detail, 0)
	}
	if f.Cause != nil {
		method, _ := grpc.Method(ctx)
		s.c.Logger.Log(ctx, f.Level(), "call failed", "method", method, "error", f.Cause)
	}
	return fail(f.Kind, f.Detail, f.Retry)
}
