package rpcapi

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/forwarding"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/nettest"
	"github.com/firnid/firn/server/rpcapi/firnv1"
	"github.com/firnid/firn/server/service"
)

// A strict peer answers the hops that match.
type strict struct {
	hop service.Hop
	err error // of the proof
}

func (s strict) Admit(_ context.Context, h service.Hop) error {
	switch {
	case h.Member != s.hop.Member:
		return service.ErrOtherMember
	case s.err != nil:
		return s.err
	case h.Proof != s.hop.Proof:
		return members.ErrOtherStore
	}
	return nil
}

func (strict) Owner(string) string { return "owner" }

// TestRefusedHops: a server takes no ID for a hop that is not its own, and the
// server that has sent it knows that another one may be asked.
func TestRefusedHops(t *testing.T) {
	var asked atomic.Int64
	backend := seeing(func(context.Context) { asked.Add(1) })
	mine := service.Hop{Member: "me", Proof: proof}
	conn := func(p service.Receiver) *grpc.ClientConn { return serve(t, Config{Backend: backend, Peer: p}) }
	good := func() *firnv1.ForwardRequest {
		return &firnv1.ForwardRequest{Version: service.HopProtocol, Sequencer: "orders", Count: 1, Member: "me", Caller: proof.Member, Record: uint32(proof.Record), Nonce: proof.Nonce}
	}
	for _, row := range []struct {
		what   string
		peer   service.Receiver
		change func(*firnv1.ForwardRequest)
		code   codes.Code
		kind   string
	}{
		{"no version", strict{hop: mine}, func(r *firnv1.ForwardRequest) { r.Version = 0 }, codes.FailedPrecondition, service.HopVersion.String()},
		{"a later version", strict{hop: mine}, func(r *firnv1.ForwardRequest) { r.Version = service.HopProtocol + 1 }, codes.FailedPrecondition, service.HopVersion.String()},
		{"a server without a store", nil, nil, codes.FailedPrecondition, service.NoStore.String()},
		{"another server", strict{hop: mine}, func(r *firnv1.ForwardRequest) { r.Member = "you" }, codes.FailedPrecondition, service.OtherMember.String()},
		{"no server", strict{hop: mine}, func(r *firnv1.ForwardRequest) { r.Member = "" }, codes.FailedPrecondition, service.OtherMember.String()},
		{"another nonce", strict{hop: mine}, func(r *firnv1.ForwardRequest) { r.Nonce = "other" }, codes.FailedPrecondition, service.OtherStore.String()},
		{"no nonce", strict{hop: mine}, func(r *firnv1.ForwardRequest) { r.Nonce = "" }, codes.FailedPrecondition, service.OtherStore.String()},
		{"another record", strict{hop: mine}, func(r *firnv1.ForwardRequest) { r.Record = 8 }, codes.FailedPrecondition, service.OtherStore.String()},
		{"another caller", strict{hop: mine}, func(r *firnv1.ForwardRequest) { r.Caller = "you" }, codes.FailedPrecondition, service.OtherStore.String()},
		{"a silent store", strict{hop: mine, err: sequencer.ErrUnavailable}, nil, codes.Unavailable, "store-unavailable"},
		{"no sequencer", strict{hop: mine}, func(r *firnv1.ForwardRequest) { r.Sequencer = "" }, codes.InvalidArgument, "bad-parameter"},
		{"no count", strict{hop: mine}, func(r *firnv1.ForwardRequest) { r.Count = 0 }, codes.InvalidArgument, "bad-parameter"},
	} {
		r := good()
		if row.change != nil {
			row.change(r)
		}
		_, err := firnv1.NewForwardingClient(conn(row.peer)).Forward(t.Context(), r)
		wantCode(t, row.what, err, row.code, row.kind)
	}
	ids := firnv1.NewIDsClient(conn(strict{hop: mine}))
	old := metadata.AppendToOutgoingContext(t.Context(), hopKey, "1")
	_, err := ids.Next(old, &firnv1.NextRequest{})
	wantCode(t, "a hop of version 1", err, codes.FailedPrecondition, service.HopVersion.String())
	stream, err := ids.Stream(old)
	if err == nil {
		_ = stream.Send(&firnv1.StreamRequest{Credit: 1})
		_, err = stream.Recv()
	}
	wantCode(t, "a stream of version 1", err, codes.FailedPrecondition, service.HopVersion.String())
	if n := asked.Load(); n != 0 {
		t.Errorf("%d calls came to the backend, want none", n)
	}
	_, err = firnv1.NewForwardingClient(conn(strict{hop: mine})).Forward(t.Context(), good())
	wantCode(t, "its own", err, codes.ResourceExhausted, "nodes-exhausted")
	if n := asked.Load(); n != 1 {
		t.Errorf("%d calls came to the backend, want one", n)
	}
}

// TestForwardRefused: a server that is not the intended one gives nothing, even
// if it does not know such calls, and the error shows why.
func TestForwardRefused(t *testing.T) {
	f := newForwarder(t, forwarding.ForwarderConfig{})
	mine := service.Hop{Member: "me", Proof: proof}
	older := grpc.NewServer()
	firnv1.RegisterIDsServer(older, NewServer(Config{Backend: static(t, "default")}))
	l := nettest.Listen(t)
	go older.Serve(l)
	defer older.Stop()
	for what, at := range map[string]forwarding.Target{
		"an older server": {Address: l.Addr().String()},
		"a static server": start(t, Config{Backend: static(t, "default")}, nil),
		"another member":  start(t, Config{Backend: static(t, "default"), Peer: strict{hop: service.Hop{Member: "you", Proof: proof}}}, nil),
		"another store":   start(t, Config{Backend: static(t, "default"), Peer: strict{hop: service.Hop{Member: "me"}}}, nil),
	} {
		at.Member = "me"
		a, err := f.Forward(t.Context(), at, proof, "orders", firn.Default(), 1)
		if e := new(forwarding.ForwardError); !errors.Is(err, forwarding.ErrRefused) || !errors.As(err, &e) || a.Batch.Len() != 0 {
			t.Errorf("%s: %d IDs and %v, want ErrRefused", what, a.Batch.Len(), err)
		}
		if errors.Is(err, sequencer.ErrUnavailable) || errors.Is(err, grant.ErrNodesExhausted) {
			t.Errorf("%s: %v, which says something about the store", what, err)
		}
	}
	at := start(t, Config{Backend: static(t, "default"), Peer: strict{hop: mine}}, nil)
	at.Member = "me"
	if a, err := f.Forward(t.Context(), at, proof, "orders", firn.Default(), 2); err != nil || a.Batch.Len() != 2 {
		t.Errorf("the one that was meant: %d IDs, %v", a.Batch.Len(), err)
	}
}

// TestForwardNeedsRights: who may not take IDs may not forward calls either,
// and learns nothing else.
func TestForwardNeedsRights(t *testing.T) {
	conn := serve(t, Config{Auth: needs{}, Peer: strict{}})
	_, err := firnv1.NewForwardingClient(conn).Forward(t.Context(), &firnv1.ForwardRequest{})
	wantCode(t, "Forward", err, codes.Unauthenticated, "unauthorized")
	_, err = firnv1.NewIDsClient(conn).Next(metadata.AppendToOutgoingContext(t.Context(), hopKey, "1"), &firnv1.NextRequest{})
	wantCode(t, "a hop of version 1", err, codes.Unauthenticated, "unauthorized")
}
