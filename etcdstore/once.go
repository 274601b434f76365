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

// An attempt is the state of the one request of a CAS. It is carried by the
// request's context.
type attempt struct {
	sent atomic.Bool // it was passed to a connection
	last error       // the error of the last attempt; used by the calling goroutine
}

type attemptKey struct{}

func attemptOf(ctx context.Context, method string) *attempt {
	if method != pb.KV_Txn_FullMethodName {
		return nil // a token request, for example, with the context of the CAS
	}
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// unknown reports whether the request may be applied, now or later.
func (a *attempt) unknown() bool { return a.sent.Load() && !isRefusal(a.last) }

// sendOnce prevents the client from sending a CAS again if its result is
// unknown.
//
// The client would do that: it assumes that the codes Canceled and
// DeadlineExceeded are its own while the context is not done, and retries. But
// servers and proxies also return these codes, after the request was applied,
// and then the second request would be refused because of the first.
// TestSendOnce has such a server.
func sendOnce(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	a := attemptOf(ctx, method)
	if a == nil {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	if a.unknown() {
		return status.Error(codes.Aborted, a.last.Error()) // a code that is not retried
	}
	a.sent.Store(false) // everything sent before was refused
	a.last = invoke(ctx, method, req, reply, conn, opts...)
	return a.last
}

// An observer records when the request of a CAS is passed to a connection. gRPC
// reports that in the calling goroutine, before the call returns. A request
// that was not reported has not left the process.
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
