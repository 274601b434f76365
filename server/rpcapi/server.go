// Package rpcapi serves IDs over gRPC: the services firn.v1.IDs and firn.v1.Sequencers
// of server/proto, health and reflection.
//
// It makes no IDs itself, and knows no store: see package httpapi for what is behind it.
package rpcapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/firnid/firn/server/httpapi"
	"github.com/firnid/firn/server/rpcapi/firnv1"
)

// A Guard knows who may do what. It must be safe for use by many goroutines at once.
type Guard interface {
	// CheckToken returns nil if who has sent a token, or is at the other end of a TLS
	// connection, may do that, with the sequencer that is named where there is one. Else
	// it returns an error that is httpapi.ErrUnauthorized or httpapi.ErrForbidden. The
	// token is empty and the state nil where there is none.
	CheckToken(token string, state *tls.ConnectionState, need httpapi.Need, name string) error
}

// Config says what a Server serves. Only the Backend is needed.
type Config struct {
	// Backend finds the sequencers. Where it is an httpapi.Administrator, they can be
	// administered.
	Backend httpapi.Backend

	// Limit is how long a call may wait for its IDs, where its deadline is not before;
	// 0 means httpapi.DefaultLimit.
	Limit time.Duration

	// Guard knows who may do what; nil lets everybody do everything.
	Guard Guard

	// TLSState returns the TLS state of a connection, or nil; nil means that none has.
	TLSState func(net.Conn) *tls.ConnectionState

	// Observe is told of every call: how it ended, and how long it took. nil means that
	// nobody is.
	Observe func(method string, code codes.Code, d time.Duration)

	// Log is told of failures that are nobody's but the server's; nil means nobody is.
	Log *slog.Logger
}

// Limits of a connection and a call.
const (
	maxMessage  = 64 << 10 // of a request; answers have no limit but MaxCount
	maxStreams  = 1000     // at once in a connection
	helloLimit  = 10 * time.Second
	pingLeast   = 5 * time.Second  // between pings of a client
	pingEvery   = 30 * time.Second // of the server, when it is silent
	pingTimeout = 20 * time.Second
)

// A Server answers gRPC. It must be made by NewServer. Its methods are safe for use by
// many goroutines at once.
type Server struct {
	firnv1.UnimplementedIDsServer
	firnv1.UnimplementedSequencersServer
	c      Config
	grpc   *grpc.Server
	health *health.Server
}

// NewServer makes a Server. It panics if c has no Backend.
func NewServer(c Config) *Server {
	if c.Backend == nil {
		panic("rpcapi: NewServer needs a Config with a Backend")
	}
	if c.Limit == 0 {
		c.Limit = httpapi.DefaultLimit
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{c: c, health: health.NewServer()}
	s.grpc = grpc.NewServer(
		grpc.Creds(begun{c.TLSState}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(helloLimit),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingLeast, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingEvery, Timeout: pingTimeout}),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
	)
	firnv1.RegisterIDsServer(s.grpc, s)
	firnv1.RegisterSequencersServer(s.grpc, s)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	return s
}

// Serve serves the connections of a listener, which it closes, until Shutdown or Close.
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Drain makes the health service say that the server is about to stop.
func (s *Server) Drain() { s.health.Shutdown() }

// Shutdown lets calls finish until ctx is done, and then ends them.
func (s *Server) Shutdown(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.grpc.Stop()
		<-done
		return ctx.Err()
	}
}

// begun are the credentials of connections whose handshake was made before they came
// here.
type begun struct {
	state func(net.Conn) *tls.ConnectionState
}

func (b begun) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if b.state != nil {
		if state := b.state(conn); state != nil {
			return conn, credentials.TLSInfo{State: *state, CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
		}
	}
	return conn, plain{}, nil
}

func (begun) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("rpcapi: these credentials are a server's")
}

func (b begun) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "begun"}
}

func (b begun) Clone() credentials.TransportCredentials { return b }

func (begun) OverrideServerName(string) error { return nil }

// plain is what is known of a connection without TLS: nothing.
type plain struct{}

func (plain) AuthType() string { return "none" }

// open are services that everybody may ask.
func open(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.v1.Health/") || strings.HasPrefix(method, "/grpc.reflection.")
}

// unary and stream see who asks, and how a call ends.
func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	begin := time.Now()
	answer, err := handle(ctx, req)
	if s.c.Observe != nil && !open(info.FullMethod) {
		s.c.Observe(info.FullMethod, status.Code(err), time.Since(begin))
	}
	return answer, err
}

func (s *Server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	begin := time.Now()
	err := handle(srv, stream)
	if s.c.Observe != nil && !open(info.FullMethod) {
		s.c.Observe(info.FullMethod, status.Code(err), time.Since(begin))
	}
	return err
}

// check asks the Guard.
func (s *Server) check(ctx context.Context, need httpapi.Need, name string) error {
	if s.c.Guard == nil {
		return nil
	}
	var token string
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		for _, v := range md.Get("authorization") {
			if t, ok := strings.CutPrefix(v, "Bearer "); ok {
				token = t
			}
		}
	}
	var state *tls.ConnectionState
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			state = &info.State
		}
	}
	err := s.c.Guard.CheckToken(token, state, need, name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, httpapi.ErrForbidden):
		return fail(codes.PermissionDenied, "forbidden", err.Error(), 0)
	}
	return fail(codes.Unauthenticated, "unauthorized", err.Error()+": send a token, as metadata authorization: Bearer firn_…", 0)
}

// fail is an error of a call, with the kind that HTTP has for it too.
func fail(code codes.Code, kind, text string, retry time.Duration) error {
	st := status.New(code, text)
	with, err := st.WithDetails(&errdetails.ErrorInfo{Reason: kind, Domain: "firn"})
	if err == nil && retry > 0 {
		with, err = with.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	}
	if err != nil {
		return st.Err()
	}
	return with.Err()
}

func invalid(text string) error { return fail(codes.InvalidArgument, "bad-parameter", text, 0) }

// failed is what an error of a Backend or its sources is to a client. The context is
// that of the call.
func (s *Server) failed(ctx context.Context, method string, err error) error {
	switch ctx.Err() {
	case context.Canceled:
		return status.FromContextError(context.Canceled).Err()
	case context.DeadlineExceeded: // the client's own, as the server's is another
		return fail(codes.DeadlineExceeded, "busy", "no ID was free before the call's deadline; none was taken", 0)
	}
	f := httpapi.FaultOf(err, s.c.Limit, errors.Is(err, context.DeadlineExceeded))
	if f.Cause != nil {
		s.c.Log.Error("call failed", "method", method, "error", f.Cause)
	}
	return fail(codeOf(f), f.Kind, f.Detail, f.Retry)
}

// codeOf is the code of a fault: UNAVAILABLE may be tried again, and others not.
func codeOf(f httpapi.Fault) codes.Code {
	switch f.Kind {
	case "nodes-exhausted", "too-many-names":
		return codes.ResourceExhausted
	case "detached", "destroyed", "no-store":
		return codes.FailedPrecondition
	case "no-sequencer":
		return codes.NotFound
	case "different":
		return codes.AlreadyExists
	case "time-over":
		return codes.OutOfRange
	}
	switch {
	case f.Status == 503:
		return codes.Unavailable
	case f.Status >= 500:
		return codes.Internal
	}
	return codes.InvalidArgument
}
