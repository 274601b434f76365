package rpcapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/forwarding"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/nettest"
	"github.com/firnid/firn/server/requestid"
	"github.com/firnid/firn/server/rpcapi/firnv1"
	"github.com/firnid/firn/server/service"
)

// start serves on a listener, and returns its address.
func start(t *testing.T, c Config, l net.Listener) forwarding.Target {
	t.Helper()
	if l == nil {
		l = nettest.Listen(t)
	}
	s := NewServer(c)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), nettest.Patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return forwarding.Target{Address: l.Addr().String()}
}

func newForwarder(t *testing.T, c forwarding.ForwarderConfig) *forwarding.Forwarder {
	t.Helper()
	f := forwarding.NewForwarder(c)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// A lenient peer answers every hop.
type lenient struct{}

func (lenient) Admit(context.Context, service.Hop) error { return nil }
func (lenient) Owner(string) string                      { return "owner" }

// proof is the one of a server that a lenient peer does not look for.
var proof = members.Proof{Member: "caller", Record: 7, Nonce: "nonce"}

// TestForward: what another server gives is what it would have given itself,
// for all forms and sizes of IDs.
func TestForward(t *testing.T) {
	f := newForwarder(t, forwarding.ForwarderConfig{})
	for _, text := range []string{"default", "hazelcast", "boundary", "uuidv7"} {
		l := firn.MustParseLayout(text)
		at := start(t, Config{Backend: static(t, text), Peer: lenient{}}, nil)
		seen := make(map[string]bool)
		for _, n := range []int{1, 2, 1000} {
			if l.Bits() == 128 {
				a, err := f.Forward128(t.Context(), at, proof, "orders", l, n)
				wantNew(t, a, err, n, seen)
			} else {
				a, err := f.Forward(t.Context(), at, proof, "orders", l, n)
				wantNew(t, a, err, n, seen)
			}
		}
	}
}

func wantNew[I firn.AnyID[I]](t *testing.T, a forwarding.AnswerOf[I], err error, n int, seen map[string]bool) {
	t.Helper()
	if err != nil || a.Batch.Len() != n || a.Owner != "owner" {
		t.Fatalf("%d of %d IDs of %q: %v", a.Batch.Len(), n, a.Owner, err)
	}
	for id := range a.Batch.All() {
		if text := fmt.Sprint(id); seen[text] {
			t.Fatalf("%s a second time", text)
		} else {
			seen[text] = true
		}
	}
}

// An assisted backend asks another server where it has no node ID, as a server
// does.
type assisted struct {
	service.Backend
	f    *forwarding.Forwarder
	to   forwarding.Target
	l    firn.Layout
	asks atomic.Int64
}

func (a *assisted) Sequencer(ctx context.Context, name string) (service.Sequencer, error) {
	s, err := a.Backend.Sequencer(ctx, name)
	if errors.Is(err, grant.ErrNodesExhausted) {
		a.asks.Add(1)
		return service.Sequencer{Layout: a.l, Source: sourceFunc(func(ctx context.Context, n int) (firn.Batch, error) {
			return a.forward(ctx, name, n)
		})}, nil
	}
	if err != nil {
		return s, err
	}
	own := s.Source
	s.Source = sourceFunc(func(ctx context.Context, n int) (firn.Batch, error) {
		b, err := own.NextBatch(ctx, n)
		if errors.Is(err, grant.ErrNodesExhausted) {
			a.asks.Add(1)
			return a.forward(ctx, name, n)
		}
		return b, err
	})
	return s, nil
}

func (a *assisted) forward(ctx context.Context, name string, n int) (firn.Batch, error) {
	answer, err := a.f.Forward(ctx, a.to, proof, name, a.l, n)
	return answer.Batch, err
}

type sourceFunc func(context.Context, int) (firn.Batch, error)

func (f sourceFunc) NextBatch(ctx context.Context, n int) (firn.Batch, error) { return f(ctx, n) }

// TestForwardBetweenServers: two servers share a store with one node ID. The
// server without it asks the other, with many calls at once, and no ID is
// repeated.
func TestForwardBetweenServers(t *testing.T) {
	store := new(memstore.Store)
	cluster := func() *service.Cluster {
		c := service.NewCluster(service.ClusterConfig{Fleet: service.NewFleet(store, nil), Config: sequencer.Config{Nodes: &sequencer.Range{Lo: 0, Hi: 0}}})
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	f := newForwarder(t, forwarding.ForwarderConfig{})
	one := start(t, Config{Backend: cluster(), Peer: lenient{}}, nil)
	has := func(at forwarding.Target) []uint64 {
		b, err := f.Forward(t.Context(), at, proof, "orders", firn.Default(), 10)
		if err != nil {
			t.Fatal(err)
		}
		var ids []uint64
		for id := range b.Batch.All() {
			ids = append(ids, uint64(id))
		}
		return ids
	}
	all := has(one) // it has the number now
	asking := &assisted{Backend: cluster(), f: f, to: one, l: firn.Default()}
	two := start(t, Config{Backend: asking, Peer: lenient{}}, nil)

	// A call that is forwarded already goes no further.
	if _, err := f.Forward(t.Context(), two, proof, "orders", firn.Default(), 1); !errors.Is(err, grant.ErrNodesExhausted) {
		t.Errorf("forwarded twice: %v, want ErrNodesExhausted", err)
	}
	conn := dialTo(t, two)
	var mu sync.Mutex
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 50 {
				r, err := firnv1.NewIDsClient(conn).Next(context.Background(), &firnv1.NextRequest{Sequencer: "orders", Count: 10})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				all = append(all, r.Ids...)
				mu.Unlock()
			}
		})
	}
	calls.Wait()
	seen := make(map[uint64]bool)
	for _, id := range all {
		if seen[id] {
			t.Fatalf("%d a second time", id)
		}
		seen[id] = true
	}
	if len(seen) != 10+8*50*10 || asking.asks.Load() != 401 {
		t.Errorf("%d IDs, and %d calls forwarded", len(seen), asking.asks.Load())
	}
}

// TestForwardLoop: two servers that would ask each other for ever.
func TestForwardLoop(t *testing.T) {
	f := newForwarder(t, forwarding.ForwarderConfig{})
	nobody := sourceBackend{func(context.Context, int) (firn.Batch, error) { return firn.Batch{}, grant.ErrNodesExhausted }}
	a := &assisted{Backend: nobody, f: f, l: firn.Default()}
	b := &assisted{Backend: nobody, f: f, l: firn.Default()}
	at, bt := start(t, Config{Backend: a, Peer: lenient{}}, nil), start(t, Config{Backend: b, Peer: lenient{}}, nil)
	a.to, b.to = bt, at
	_, err := firnv1.NewIDsClient(dialTo(t, at)).Next(t.Context(), &firnv1.NextRequest{})
	wantCode(t, "loop", err, codes.ResourceExhausted, "nodes-exhausted")
	if a, b := a.asks.Load(), b.asks.Load(); a != 1 || b != 1 {
		t.Errorf("%d and %d calls were forwarded, want 1 and 1 (which was refused)", a, b)
	}
}

// A sourceBackend has one source for all names.
type sourceBackend struct{ s sourceFunc }

func (b sourceBackend) Sequencer(context.Context, string) (service.Sequencer, error) {
	return service.Sequencer{Layout: firn.Default(), Source: b.s}, nil
}

func (sourceBackend) Ready(context.Context) error             { return nil }
func (sourceBackend) Admin() service.Administrator            { return nil }
func (sourceBackend) Opened(string) (service.Sequencer, bool) { return service.Sequencer{}, false }

func dialTo(t *testing.T, to forwarding.Target) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+to.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestForwardErrors: an error of the other server keeps its kind, and does not
// name that server.
func TestForwardErrors(t *testing.T) {
	f := newForwarder(t, forwarding.ForwarderConfig{})
	for _, err := range []error{
		grant.ErrNodesExhausted, &grant.ExhaustedError{Ahead: true, Free: time.Now().Add(40 * time.Minute)}, grant.ErrRolledBack, grant.ErrDetached, grant.ErrDestroyed, grant.ErrDamaged,
		grant.ErrMismatch, sequencer.ErrUnavailable, sequencer.ErrClosed, firn.ErrBatchTooLarge, firn.ErrExhausted,
		&firn.WaitError{Wait: 1500 * time.Millisecond}, &firn.ClockError{Wait: time.Minute}, firn.ErrGrantOver, firn.ErrTimeOver,
		&grant.ClockAheadError{Ahead: time.Minute}, &grant.ClockAheadError{Comparing: true},
		service.ErrTooManyNames, errors.New("the disk is on fire"),
	} {
		at := start(t, Config{Backend: sourceBackend{func(context.Context, int) (firn.Batch, error) { return firn.Batch{}, err }}, Peer: lenient{}}, nil)
		_, got := f.Forward(t.Context(), at, proof, "orders", firn.Default(), 1)
		var e *forwarding.ForwardError
		if !errors.As(got, &e) {
			t.Errorf("%v: %T %v, want a ForwardError", err, got, got)
			continue
		}
		if strings.Contains(got.Error(), at.Address) || e.Target != at {
			t.Errorf("%q says where the target is, %v", got, e.Target)
		}
		want, have := service.FaultOf(err, time.Second, false), service.FaultOf(got, time.Second, false)
		if want.Kind == service.Draining {
			want = have // another one is asked
			if !errors.Is(got, forwarding.ErrUnreachable) {
				t.Errorf("draining is %v, want ErrUnreachable", got)
			}
		}
		if have.Kind != want.Kind || (have.Retry-want.Retry).Abs() > time.Second {
			t.Errorf("%v: %s %v, want %s %v", err, have.Kind, have.Retry, want.Kind, want.Retry)
		}
	}
}

// TestForwardUnreachable: no server, another program, and one that does not
// answer.
func TestForwardUnreachable(t *testing.T) {
	silent := nettest.Listen(t)
	defer silent.Close()
	f := newForwarder(t, forwarding.ForwarderConfig{Limit: 300 * time.Millisecond})
	for what, address := range map[string]string{"silent": silent.Addr().String(), "gone": nettest.FreeAddress(t)} {
		_, err := f.Forward(t.Context(), forwarding.Target{Address: address}, proof, "orders", firn.Default(), 1)
		if !errors.Is(err, forwarding.ErrUnreachable) || errors.Is(err, sequencer.ErrUnavailable) { // which would be the store
			t.Errorf("%s: %v, want ErrUnreachable", what, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := f.Forward(ctx, forwarding.Target{Address: silent.Addr().String()}, proof, "orders", firn.Default(), 1); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, forwarding.ErrUnreachable) {
		t.Errorf("%v, want the context's error", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Forward(t.Context(), forwarding.Target{}, proof, "orders", firn.Default(), 1); !errors.Is(err, sequencer.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A liar answers what it likes.
type liar struct {
	firnv1.UnimplementedForwardingServer
	r    *firnv1.NextResponse
	call []byte // in place of the request's
}

func (l *liar) Forward(_ context.Context, q *firnv1.ForwardRequest) (*firnv1.ForwardResponse, error) {
	call := q.GetCall()
	if l.call != nil {
		call = l.call
	}
	return &firnv1.ForwardResponse{Call: call, Owner: "owner", Next: l.r}, nil
}

// TestForwardDistrusts: answers that are not what was asked for are errors.
func TestForwardDistrusts(t *testing.T) {
	lies := new(liar)
	s := grpc.NewServer()
	firnv1.RegisterForwardingServer(s, lies)
	l := nettest.Listen(t)
	go s.Serve(l)
	defer s.Stop()
	f := newForwarder(t, forwarding.ForwarderConfig{})
	to := forwarding.Target{Address: l.Addr().String()}
	def, wide := firn.Default(), firn.MustParseLayout("boundary")
	ids := func(i ...uint64) *firnv1.NextResponse {
		return &firnv1.NextResponse{Layout: def.String(), Ids: i}
	}
	runs := func(l firn.Layout, r ...*firnv1.Run) *firnv1.NextResponse {
		return &firnv1.NextResponse{Layout: l.String(), Runs: r}
	}
	last := make([]byte, 16)
	for i := range last {
		last[i] = 0xff
	}
	for what, r := range map[string]*firnv1.NextResponse{
		"nothing": {Layout: def.String()}, "too few": ids(1), "too many": ids(1, 2, 3),
		"wide":     {Layout: def.String(), Ids128: make([]byte, 32)},
		"layout":   {Layout: "hazelcast", Ids: []uint64{1, 2}},
		"no text":  {Layout: "", Ids: []uint64{1, 2}},
		"repeats":  runs(def, &firnv1.Run{First: 1, Step: 0, Count: 2}),
		"empty":    runs(def, &firnv1.Run{First: 1, Step: 1, Count: 0}, &firnv1.Run{First: 1, Step: 1, Count: 2}),
		"overflow": runs(def, &firnv1.Run{First: ^uint64(0), Step: 1, Count: 2}),
		"way":      runs(def, &firnv1.Run{First: 1, Step: ^uint64(0), Count: 4_000_000_000}),
		"long":     runs(def, &firnv1.Run{First: 1, Step: 1, Count: 4_000_000_000}),
		"both":     runs(def, &firnv1.Run{First: 1, First128: make([]byte, 16), Step: 1, Count: 2}),
	} {
		lies.r = r
		if b, err := f.Forward(t.Context(), to, proof, "orders", def, 2); err == nil {
			t.Errorf("%s: %d IDs, want an error", what, b.Batch.Len())
		}
	}
	for what, r := range map[string]*firnv1.NextResponse{
		"narrow":   {Layout: wide.String(), Ids: []uint64{1, 2}},
		"cut":      {Layout: wide.String(), Ids128: make([]byte, 31)},
		"short":    runs(wide, &firnv1.Run{First128: make([]byte, 15), Step: 1, Count: 2}),
		"overflow": runs(wide, &firnv1.Run{First128: last, Step: 1, Count: 2}),
	} {
		lies.r = r
		if b, err := f.Forward128(t.Context(), to, proof, "orders", wide, 2); err == nil {
			t.Errorf("%s: %d IDs of 128 bits, want an error", what, b.Batch.Len())
		}
	}
	lies.r = runs(def, &firnv1.Run{First: 7, Step: 4096, Count: 2})
	b, err := f.Forward(t.Context(), to, proof, "orders", def, 2)
	if err != nil || b.Batch.Len() != 2 || b.Batch.Runs()[0] != (firn.Run{First: 7, Step: 4096, Count: 2}) {
		t.Errorf("%v, %v", b.Batch.Runs(), err)
	}
	for _, call := range [][]byte{{}, make([]byte, 16)} { // such as an answer that came before
		lies.call = call
		if b, err := f.Forward(t.Context(), to, proof, "orders", def, 2); err == nil {
			t.Errorf("the answer to another call: %d IDs, want an error", b.Batch.Len())
		}
	}
	lies.call = nil
	for _, n := range []int{0, -1, service.MaxCount + 1} {
		if _, err := f.Forward(t.Context(), to, proof, "orders", def, n); err == nil {
			t.Errorf("%d IDs: no error", n)
		}
	}
	if _, err := f.Forward(t.Context(), to, proof, "orders", wide, 1); err == nil {
		t.Error("64 bits of a layout with 128: no error")
	}
}

// TestForwardConnections: calls share one connection, and few are kept.
func TestForwardConnections(t *testing.T) {
	var dials atomic.Int64
	f := newForwarder(t, forwarding.ForwarderConfig{MaxTargets: 2, Dial: func(ctx context.Context, address string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}})
	var to []forwarding.Target
	for range 3 {
		to = append(to, start(t, Config{Backend: static(t, "default"), Peer: lenient{}}, nil))
	}
	ask := func(at forwarding.Target) {
		t.Helper()
		if _, err := f.Forward(t.Context(), at, proof, "orders", firn.Default(), 1); err != nil {
			t.Error(err)
		}
	}
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() { ask(to[0]) })
	}
	calls.Wait()
	if n := dials.Load(); n != 1 {
		t.Errorf("%d connections for 20 calls, want 1", n)
	}
	for _, at := range []forwarding.Target{to[1], to[0], to[2], to[0]} {
		ask(at)
	}
	if n := dials.Load(); n != 3 {
		t.Errorf("%d connections made, want 3", n)
	}
	if ask(to[1]); dials.Load() != 4 {
		t.Errorf("%d connections made, want one more for the one that was not used for longest", dials.Load())
	}
}

// TestForwardMetadata: what is sent beside a call.
func TestForwardMetadata(t *testing.T) {
	got := make(chan metadata.MD, 1)
	at := start(t, Config{Peer: lenient{}, Backend: sourceBackend{func(ctx context.Context, n int) (firn.Batch, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		got <- md
		if !service.Forwarded(ctx) {
			t.Error("the call is not known as forwarded")
		}
		return firn.BatchFromRuns(firn.Run{First: 1, Step: 1, Count: n}), nil
	}}}, nil)
	token := ""
	f := newForwarder(t, forwarding.ForwarderConfig{Token: func() string { return token }})
	if _, err := f.Forward(t.Context(), at, proof, "orders", firn.Default(), 1); err != nil {
		t.Fatal(err)
	}
	if md := <-got; md.Get("authorization") != nil || len(md.Get(requestid.Metadata)) != 1 || !requestid.Valid(md.Get(requestid.Metadata)[0]) {
		t.Errorf("%v", md)
	}
	token = "firn_secret"
	_, err := f.Forward(t.Context(), at, proof, "orders", firn.Default(), 1)
	if e := new(forwarding.ForwardError); !errors.As(err, &e) || e.Kind != service.Unauthorized {
		t.Errorf("a token without TLS: %v", err)
	}
	if fault := service.FaultOf(err, time.Second, false); fault.Kind != service.Internal || fault.Cause == nil {
		t.Errorf("a token without TLS is %+v to clients, want internal", fault)
	}
	f = newForwarder(t, forwarding.ForwarderConfig{Token: func() string { return token }, PlainToken: true})
	incoming := requestid.WithID(t.Context(), "order-17")
	if _, err := f.Forward(incoming, at, proof, "orders", firn.Default(), 1); err != nil {
		t.Fatal(err)
	}
	if md := <-got; md.Get("authorization")[0] != "Bearer firn_secret" || md.Get(requestid.Metadata)[0] != "order-17" {
		t.Errorf("%v", md)
	}
}

// TestForwardTLS: certificates of both ends, as between servers with mTLS.
func TestForwardTLS(t *testing.T) {
	pair, pool := nettest.Certificate(t)
	peers := make(chan string, 8)
	secure := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"}}
	at := start(t, Config{
		Backend: static(t, "default"), Peer: lenient{},
		TLSState: func(c net.Conn) *tls.ConnectionState {
			if err := c.(*tls.Conn).Handshake(); err != nil {
				return nil
			}
			s := c.(*tls.Conn).ConnectionState()
			return &s
		},
		Auth: guardFunc(func(token string, state *tls.ConnectionState) error {
			if state == nil || len(state.VerifiedChains) == 0 {
				return auth.ErrUnauthorized
			}
			peers <- state.PeerCertificates[0].Subject.CommonName + token
			return nil
		}),
	}, tls.NewListener(nettest.Listen(t), secure))
	at.TLS = true
	f := newForwarder(t, forwarding.ForwarderConfig{TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, Token: func() string { return "+token" }})
	if _, err := f.Forward(t.Context(), at, proof, "orders", firn.Default(), 3); err != nil {
		t.Fatal(err)
	}
	if got := <-peers; got != "member+token" {
		t.Errorf("the peer is %q", got)
	}
	stranger := newForwarder(t, forwarding.ForwarderConfig{TLS: &tls.Config{Certificates: []tls.Certificate{pair}}})
	if _, err := stranger.Forward(t.Context(), at, proof, "orders", firn.Default(), 1); !errors.Is(err, forwarding.ErrUnreachable) {
		t.Errorf("an authority that is not known: %v, want ErrUnreachable", err)
	}
}

type guardFunc func(token string, state *tls.ConnectionState) error

func (g guardFunc) Allow(c *auth.Credentials, _ auth.Action, _ string) error {
	return g(c.Token, c.TLS)
}
