package etcdstore

import (
	"context"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// An outcome is what has become of the requests of one call of a Store. It is
// carried by their context.
type outcome struct {
	isCAS  bool
	sent   atomic.Bool           // the request of the CAS was passed to a connection
	failed atomic.Pointer[error] // the last error; of a CAS, that of its own request
}

type outcomeKey struct{}

// outcomeOf returns the outcome to which a request counts, or nil. With the
// context of a CAS, the client also requests a token, for example.
func outcomeOf(ctx context.Context, method string) *outcome {
	o, _ := ctx.Value(outcomeKey{}).(*outcome)
	if o != nil && o.isCAS && method != pb.KV_Txn_FullMethodName {
		return nil
	}
	return o
}

// last returns the last error, or nil.
func (o *outcome) last() error {
	if err := o.failed.Load(); err != nil {
		return rpctypes.Error(*err)
	}
	return nil
}

// unknown reports whether a CAS may be applied, now or later.
func (o *outcome) unknown() bool { return o.sent.Load() && !isRefusal(o.last()) }

// sendOnce prevents the client from sending a CAS again if its result is
// unknown.
//
// The client would do that: it assumes that the codes Canceled and
// DeadlineExceeded are its own while the context is not done, and retries. But
// servers and proxies also return these codes, after the request was applied,
// and then the second request would be refused because of the first.
// TestSendOnce has such a server.
//
// Of every request it keeps the error, because the client returns nothing but
// the end of its context, once it has ended.
func sendOnce(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	o := outcomeOf(ctx, method)
	if o == nil {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	if o.isCAS && o.unknown() {
		return status.Error(codes.Aborted, o.last().Error()) // a code that is not retried
	}
	o.sent.Store(false) // everything sent before was refused
	err := invoke(ctx, method, req, reply, conn, opts...)
	if err != nil {
		o.failed.Store(&err)
	}
	return err
}

// An observer records when the request of a CAS is passed to a connection. gRPC
// reports that in the calling goroutine, before the call returns. A request
// that was not reported has not left the process.
type observer struct{}

var _ stats.Handler = observer{}

func (observer) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if h, ok := s.(*stats.OutHeader); ok {
		if o := outcomeOf(ctx, h.FullMethod); o != nil {
			o.sent.Store(true)
		}
	}
}

func (observer) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (observer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (observer) HandleConn(context.Context, stats.ConnStats)                       {}
