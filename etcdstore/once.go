package etcdstore

import (
	"context"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// An attempt is what is known of the one request of a CAS. It travels in the
// request's context.
type attempt struct {
	sent atomic.Bool // it was handed to a connection
	last error       // how the last try ended; of the goroutine that calls
}

type attemptKey struct{}

func attemptOf(ctx context.Context, method string) *attempt {
	if method != pb.KV_Txn_FullMethodName {
		return nil // of a token, for instance, with the context of the CAS
	}
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// unknown reports whether the request may be applied, now or later.
func (a *attempt) unknown() bool { return a.sent.Load() && !isRefusal(a.last) }

// sendOnce keeps the client from sending a CAS again whose result is unknown.
//
// The client does that: it takes the codes Canceled and DeadlineExceeded for
// its own while the context is not done, and tries again. Those codes come from
// servers and proxies too, after the request was applied, and then the second
// would be refused because of the first. TestSendOnce has such a server.
func sendOnce(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	a := attemptOf(ctx, method)
	if a == nil {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	if a.unknown() {
		return status.Error(codes.Aborted, a.last.Error()) // a code that is not tried again
	}
	a.sent.Store(false) // whatever was sent before, was refused
	a.last = invoke(ctx, method, req, reply, conn, opts...)
	return a.last
}

// An observer notes when the request of a CAS is handed to a connection. gRPC
// says so in the goroutine that calls, before the call returns; a request of
// which it has not said so has not left the process.
type observer struct{}

var _ stats.Handler = observer{}

func (observer) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if h, ok := s.(*stats.OutHeader); ok {
		if a := attemptOf(ctx, h.FullMethod); a != nil {
			a.sent.Store(true)
		}
	}
}

func (observer) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (observer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (observer) HandleConn(context.Context, stats.ConnStats)                       {}
