package etcdstore

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/must"
)

// A failingEtcd counts transactions and answers each with an error, as a server
// or a proxy does that has applied it or not.
type failingEtcd struct {
	pb.UnimplementedKVServer
	pb.UnimplementedMaintenanceServer

	read func(ctx context.Context) error // called for each read; nil is success

	mu      sync.Mutex // guards the fields below
	answers []error    // to transactions; nil is success, as is whatever comes after the last
	asked   int
}

var header = &pb.ResponseHeader{ClusterId: 7, MemberId: 1, Revision: 1, RaftTerm: 1}

func (f *failingEtcd) Range(ctx context.Context, _ *pb.RangeRequest) (*pb.RangeResponse, error) {
	if f.read != nil {
		if err := f.read(ctx); err != nil {
			return nil, err
		}
	}
	return &pb.RangeResponse{Header: header}, nil
}

func (f *failingEtcd) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: header, Version: "3.6.0", Leader: 1}, nil
}

func (f *failingEtcd) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if len(f.answers) > 0 {
		err := f.answers[0]
		f.answers = f.answers[1:]
		if err != nil {
			return nil, err
		}
	}
	return &pb.TxnResponse{Header: header, Succeeded: true}, nil
}

// says has the transactions to come answered so, and returns how many came
// since it was last called.
func (f *failingEtcd) says(answers ...error) (asked int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked, f.asked, f.answers = f.asked, 0, answers
	return asked
}

// serve serves until the end of the test, and returns the endpoint.
func (f *failingEtcd) serve(t *testing.T) (endpoint string) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	g := grpc.NewServer()
	pb.RegisterKVServer(g, f)
	pb.RegisterMaintenanceServer(g, f)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(l) })
	t.Cleanup(func() {
		g.Stop()
		serving.Wait()
	})
	return l.Addr().String()
}

// TestReason: an attempt that the context ends does not hide why the attempt
// before it failed.
func TestReason(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reads atomic.Int64
	f := &failingEtcd{read: func(asked context.Context) error {
		if reads.Add(1) == 1 {
			return status.Error(codes.Unknown, "a proxy's own words")
		}
		cancel()
		<-asked.Done()
		return asked.Err()
	}}
	_, err := Open(ctx, &Options{Endpoints: []string{f.serve(t)}, Timeout: must.Patience})
	calls.Error(t, "Open", err, context.Canceled, "a proxy's own words", grant.ErrUnreachable)
}

// TestSendOnce: a CAS is sent once, whatever the answer. Its result is unknown,
// unless the answer guarantees that nothing was done.
func TestSendOnce(t *testing.T) {
	f := new(failingEtcd)
	s := open(t, Options{Endpoints: []string{f.serve(t)}})
	for _, tt := range []struct {
		err     error
		refused bool
	}{
		{status.Error(codes.Canceled, "context canceled"), false},
		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), false},
		{status.Error(codes.Unavailable, "the connection is lost"), false},
		{status.Error(codes.Unknown, "a proxy's own words"), false},
		{status.Error(codes.PermissionDenied, "a proxy's own words"), false},
		{rpctypes.ErrGRPCTimeout, false},
		{rpctypes.ErrGRPCNoLeader, false},
		{rpctypes.ErrGRPCLeaderChanged, false},
		{rpctypes.ErrGRPCNoSpace, false},
		{rpctypes.ErrGRPCPermissionDenied, true},
		{rpctypes.ErrGRPCUserEmpty, true},
		{rpctypes.ErrGRPCRequestTooManyRequests, true},
		{rpctypes.ErrGRPCNotSupportedForLearner, true},
	} {
		f.says(tt.err)
		ok, err := s.CAS(t.Context(), "a", nil, []byte("1"))
		asked := f.says()
		if ok || err == nil || errors.Is(err, grant.ErrNotSent) != tt.refused || asked != 1 {
			t.Errorf("CAS answered with %v: %t, %v, sent %d times; want once, and an error that is ErrNotSent: %t", tt.err, ok, err, asked, tt.refused)
		}
	}
	calls.CAS(t, s, "a", "", "1")
}
