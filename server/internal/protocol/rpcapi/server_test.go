package rpcapi

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/left"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// serve serves a backend, and returns a connection to it.
func serve(t *testing.T, c Config) *grpc.ClientConn {
	t.Helper()
	if c.Front.Backend == nil {
		c.Front.Backend = servicetest.NewStoreBackend(t, new(memstore.Store), service.StoreBackendConfig{})
	}
	l := nettest.Listen(t)
	s := NewServer(c)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	conn := nettest.DialGRPC(t, l.Addr().String())
	t.Cleanup(func() {
		_ = conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), must.Patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return conn
}

func static(t *testing.T, layout string) service.Backend {
	t.Helper()
	return must.Get(service.NewStaticBackend(service.StaticBackendConfig{Layout: firn.MustParseLayout(layout), Node: 3}))(t)
}

func wantCode(t *testing.T, what string, err error, code codes.Code, reason string) {
	t.Helper()
	st := status.Convert(err)
	got := ""
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			got = info.Reason
			if info.Domain != "firn" {
				t.Errorf("%s: domain %q", what, info.Domain)
			}
		}
	}
	if st.Code() != code || got != reason {
		t.Errorf("%s: %v with the reason %q (%v), want %v with %q", what, st.Code(), got, err, code, reason)
	}
}

// wantField checks that an error names what is wrong with a request.
func wantField(t *testing.T, field string, err error, reason string) {
	t.Helper()
	wantCode(t, field, err, codes.InvalidArgument, reason)
	if !slices.ContainsFunc(status.Convert(err).Details(), func(d any) bool {
		bad, ok := d.(*errdetails.BadRequest)
		return ok && bad.GetFieldViolations()[0].GetField() == field
	}) {
		t.Errorf("%v does not name the field %s", err, field)
	}
}

// TestNext: every form, for both sizes of IDs.
func TestNext(t *testing.T) {
	for _, layout := range []string{"default", "boundary", "uuidv7"} {
		l := firn.MustParseLayout(layout)
		ids := firnv1.NewIDsClient(serve(t, Config{Front: service.Front{Backend: static(t, layout)}}))
		for _, q := range []*firnv1.NextRequest{{}, {Sequencer: "default", Count: 5}, {Count: 3000, Form: firnv1.Form_FORM_RUNS}} {
			r, err := ids.Next(t.Context(), q)
			if q.Form == firnv1.Form_FORM_RUNS && !l.HasRuns() {
				wantCode(t, layout, err, codes.InvalidArgument, "no-runs")
				continue
			}
			if err != nil || r.Layout != l.String() {
				t.Fatal(r, err)
			}
			if got, want := len(idsOf(t, r.Ids, r.Ids128, r.Runs)), max(1, int(q.Count)); got != want {
				t.Errorf("%s: %d IDs, want %d", layout, got, want)
			}
		}
	}
}

func TestNextProblems(t *testing.T) {
	ids := firnv1.NewIDsClient(serve(t, Config{}))
	for what, tt := range map[string]struct {
		q    *firnv1.NextRequest
		kind string
	}{
		"count":     {&firnv1.NextRequest{Count: service.MaxCount + 1}, "batch-too-large"},
		"form":      {&firnv1.NextRequest{Form: 7}, "bad-parameter"},
		"sequencer": {&firnv1.NextRequest{Sequencer: "a b"}, "bad-name"},
	} {
		_, err := ids.Next(t.Context(), tt.q)
		wantField(t, what, err, tt.kind)
	}
}

// A gatedBackend gives IDs of one source for all names, once its gate is open,
// and counts them.
type gatedBackend struct {
	service.Backend
	given atomic.Int64
	gate  chan struct{}
}

func newGated() *gatedBackend {
	s := &gatedBackend{gate: make(chan struct{})}
	s.Backend = servicetest.Open(func(ctx context.Context, n int) (firn.Batch, error) {
		select {
		case <-s.gate:
		default:
			select {
			case <-s.gate:
			case <-ctx.Done():
				return firn.Batch{}, ctx.Err()
			}
		}
		first := uint64(s.given.Add(int64(n))) - uint64(n) + 1
		return firn.BatchFromRuns(firn.Run{First: firn.ID(first), Step: 1, Count: n})
	})
	return s
}

// newOpen makes a gatedBackend whose gate is open.
func newOpen() *gatedBackend {
	s := newGated()
	close(s.gate)
	return s
}

// TestNothingLeft: a call leaves nothing behind, however it ends.
func TestNothingLeft(t *testing.T) {
	ids := firnv1.NewIDsClient(serve(t, Config{Front: service.Front{Backend: newOpen()}}))
	for what, call := range map[string]func(){
		"Next": func() {
			if _, err := ids.Next(t.Context(), &firnv1.NextRequest{Sequencer: "orders"}); err != nil {
				t.Error(err)
			}
		},
		"a refused Next": func() { _, _ = ids.Next(t.Context(), &firnv1.NextRequest{Sequencer: "a b"}) },
	} {
		left.Nothing(t, what, call)
	}
}

// TestSequencers: a sequencer's life over gRPC.
func TestSequencers(t *testing.T) {
	conn := serve(t, Config{})
	q, ids := firnv1.NewSequencersClient(conn), firnv1.NewIDsClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), must.Patience)
	defer cancel()
	_, err := q.Get(ctx, &firnv1.GetRequest{Name: "orders"})
	wantCode(t, "Get", err, codes.NotFound, "no-sequencer")
	_, err = q.Create(ctx, &firnv1.CreateRequest{Name: "-"})
	wantField(t, "name", err, "bad-name")
	const window = 45 * time.Second
	as := &firnv1.CreateRequest{Name: "orders", Layout: "hazelcast", Prefix: "order", Window: durationpb.New(window)}
	for range 2 {
		r := must.Get(q.Create(ctx, as))(t).GetSequencer()
		if r.State != "attached" || r.Layout != "hazelcast" || r.Prefix != "order" || r.Window.AsDuration() != window {
			t.Errorf("%v was created, want %v", r, as)
		}
	}
	_, err = q.Create(ctx, &firnv1.CreateRequest{Name: "orders"})
	wantCode(t, "Create of another", err, codes.AlreadyExists, "different")
	must.Get(ids.Next(ctx, &firnv1.NextRequest{Sequencer: "orders"}))(t)
	if r := must.Get(q.Get(ctx, &firnv1.GetRequest{Name: "orders"}))(t); len(r.Nodes) != 1 || !r.Nodes[0].Held {
		t.Errorf("node IDs %v, want one that is held", r.Nodes)
	}
	if r := must.Get(q.List(ctx, &firnv1.ListRequest{}))(t); len(r.Sequencers) != 1 {
		t.Errorf("the list has %v", r.Sequencers)
	}
	state := func(r interface{ GetSequencer() *firnv1.Sequencer }, want string) {
		t.Helper()
		if got := r.GetSequencer().GetState(); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
	state(must.Get(q.Detach(ctx, &firnv1.DetachRequest{Name: "orders"}))(t), "detached")
	_, err = ids.Next(ctx, &firnv1.NextRequest{Sequencer: "orders"})
	wantCode(t, "Next", err, codes.FailedPrecondition, "detached")
	state(must.Get(q.Attach(ctx, &firnv1.AttachRequest{Name: "orders"}))(t), "attached")
	state(must.Get(q.Destroy(ctx, &firnv1.DestroyRequest{Name: "orders"}))(t), "destroyed")
	_, err = firnv1.NewSequencersClient(serve(t, Config{Front: service.Front{Backend: static(t, "default")}})).List(ctx, &firnv1.ListRequest{})
	wantCode(t, "List without a store", err, codes.FailedPrecondition, "no-store")
}

// TestGet: Get has what the store has of a sequencer and its node IDs, also of
// those whose records cannot be read.
func TestGet(t *testing.T) {
	store := new(memstore.Store)
	backend := servicetest.NewStoreBackend(t, store, service.StoreBackendConfig{})
	conn := serve(t, Config{Front: service.Front{Backend: backend}})
	config := servicetest.Config(firn.Default())
	config.Nodes = &grant.NodeRange{Lo: 0, Hi: 511}
	must.Get(grant.Create(t.Context(), store, "orders", config, nil))(t)
	must.Get(firnv1.NewIDsClient(conn).Next(t.Context(), &firnv1.NextRequest{Sequencer: "orders"}))(t)
	fenced := must.Get(grant.Fence(t.Context(), store, "orders", &grant.FenceOptions{LongestWindow: config.Window}))(t)
	faultstore.Put(t, store, "v1/orders/n/0999", "{")
	r := must.Get(firnv1.NewSequencersClient(conn).Get(t.Context(), &firnv1.GetRequest{Name: "orders"}))(t)
	q := r.GetSequencer()
	if !q.GetFloor().AsTime().Equal(fenced.Floor) || q.GetLongestWindow().AsDuration() != q.GetWindow().AsDuration() || q.GetNodeRange() != "0..511" || q.GetMovedTo() != "" {
		t.Errorf("the sequencer is %v, want the floor %v", q, fenced.Floor)
	}
	if len(r.GetNodes()) != 1 || !slices.Equal(r.GetDamaged(), []uint64{999}) {
		t.Errorf("node IDs %v, damaged %d, want one and 999", r.GetNodes(), r.GetDamaged())
	}
}

// A tokenGuard is an Authorizer whose tokens are a role and a sequencer.
type tokenGuard struct{}

func (tokenGuard) Allow(c *auth.Credentials, do auth.Action, name string) error {
	switch {
	case c.Token == "":
		return auth.ErrUnauthorized
	case do == auth.Connect:
		return nil
	}
	switch c.Token {
	case strings.TrimSpace(map[auth.Action]string{auth.Take: "generate ", auth.Create: "generate ", auth.See: "read ", auth.Change: "admin "}[do] + name):
		return nil
	}
	return auth.ErrForbidden
}

// TestGuard: a call needs a token that allows it, and without one gets that
// error before any other.
func TestGuard(t *testing.T) {
	conn := serve(t, Config{Front: service.Front{Auth: tokenGuard{}}})
	const ids, q = "/firn.v1.IDs/", "/firn.v1.Sequencers/"
	for _, row := range []struct {
		token, method string
		m             proto.Message
		code          codes.Code // with the token
	}{
		{"generate orders", ids + "Next", &firnv1.NextRequest{Sequencer: "orders"}, codes.OK},
		{"generate default", ids + "Next", &firnv1.NextRequest{Count: 1e6}, codes.InvalidArgument},
		{"generate default", ids + "Next", &firnv1.NextRequest{Form: 7}, codes.InvalidArgument},
		{"generate -", ids + "Next", &firnv1.NextRequest{Sequencer: "-"}, codes.InvalidArgument},
		{"read ", q + "List", &firnv1.ListRequest{}, codes.OK},
		{"read ", q + "Get", &firnv1.GetRequest{}, codes.InvalidArgument},
		{"admin orders", q + "Attach", &firnv1.AttachRequest{Name: "orders"}, codes.OK},
		{"admin -", q + "Create", &firnv1.CreateRequest{Name: "-"}, codes.InvalidArgument},
		{"admin none", q + "Destroy", &firnv1.DestroyRequest{Name: "none"}, codes.NotFound},
	} {
		call := func(ctx context.Context) error { return conn.Invoke(ctx, row.method, row.m, new(emptypb.Empty)) }
		with := func(token string) context.Context {
			return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
		}
		wantCode(t, row.token+": without a token", call(t.Context()), codes.Unauthenticated, "unauthorized")
		wantCode(t, row.token+": another", call(with("x")), codes.PermissionDenied, "forbidden")
		if err := call(with(row.token)); status.Code(err) != row.code {
			t.Errorf("%s: %v, want %v", row.token, err, row.code)
		}
	}
	if r, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Error(r, err)
	}
}

func TestReflection(t *testing.T) {
	stream := must.Get(reflectionpb.NewServerReflectionClient(serve(t, Config{})).ServerReflectionInfo(t.Context()))(t)
	must.Do(t, stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}))
	r := must.Get(stream.Recv())(t)
	for _, want := range []string{"firn.v1.IDs", "firn.v1.Sequencers", "grpc.health.v1.Health"} {
		if names := r.GetListServicesResponse().String(); !strings.Contains(names, strconv.Quote(want)) {
			t.Errorf("%s has no %s", names, want)
		}
	}
}

// idsOf are the IDs of an answer, in whatever form they are.
func idsOf(t *testing.T, ids []uint64, ids128 []byte, runs []*firnv1.Run) (all []uint64) {
	all = slices.Clone(ids)
	if len(ids128)%16 != 0 {
		t.Fatalf("%d octets are no IDs of 128 bits", len(ids128))
	}
	for b := range slices.Chunk(ids128, 16) {
		_, lo := firn.ID128(b).Uint64s()
		all = append(all, lo)
	}
	for _, r := range runs {
		first := r.First
		if r.First128 != nil {
			if len(r.First128) != 16 || r.First != 0 {
				t.Fatalf("a run begins with %x and %d", r.First128, r.First)
			}
			_, first = firn.ID128(r.First128).Uint64s()
		}
		for i := range uint64(r.Count) {
			all = append(all, first+i*r.Step)
		}
	}
	forms := 0
	for _, n := range []int{len(ids), len(ids128), len(runs)} {
		if n > 0 {
			forms++
		}
	}
	if forms != 1 {
		t.Fatalf("an answer has %d IDs, %d octets and %d runs", len(ids), len(ids128), len(runs))
	}
	return all
}
