package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// moody returns a store that calls before, if that is not nil, before it answers
// a read of a sequencer. An error is the answer.
func moody(before func(context.Context) error) *faultstore.Store {
	return &faultstore.Store{Store: new(memstore.Store), Fault: func(ctx context.Context, r faultstore.Request) error {
		if before != nil && r.Kind == grant.RequestGet && strings.Contains(r.Key, "orders") { // servers announce themselves
			if err := before(ctx); err != nil {
				return err
			}
		}
		return r.Do()
	}}
}

// hanging returns a store whose reads hang, after a value is sent.
func hanging(asked chan<- struct{}) *faultstore.Store {
	return moody(func(ctx context.Context) error {
		asked <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
}

// backendErrors are errors of Backends, and how a request that ends with one
// counts.
var backendErrors = []struct {
	outcome string
	err     error
}{
	{"refused", grant.ErrMoved},
	{"refused", grant.ErrDetached},
	{"refused", grant.ErrDestroyed},
	{"refused", firn.ErrBatchTooLarge},
	{"refused", service.ErrNoSequencer},
	{"failed", &firn.WaitError{Wait: time.Minute}},
	{"failed", &firn.WaitError{Wait: 7 * time.Second}},
	{"failed", &firn.WaitError{Wait: 1500 * time.Millisecond}},
	{"failed", &firn.WaitError{Wait: time.Millisecond}},
	{"failed", grant.ErrNodesExhausted},
	{"failed", grant.ErrStoreWentBack},
	{"failed", grant.ErrClockBehind},
	{"failed", grant.ErrClockAhead},
	{"failed", grant.ErrDamaged},
	{"failed", grant.ErrMismatch},
	{"failed", fmt.Errorf("%w: dial 10.0.0.1: refused", firn.ErrUnavailable)},
	{"failed", firn.ErrGrantOver},
	{"failed", firn.ErrTimeOver},
	{"failed", service.ErrTooManyNames},
	{"failed", service.ErrTemplate},
	{"failed", errors.New("dial 10.0.0.1: refused")},
}

// TestOutcomes: a request has the same kind of problem, and the same outcome in
// the metrics, over every protocol. A failure of the server is never counted as
// refused, and its secrets stay in the log.
func TestOutcomes(t *testing.T) {
	// check fails if the requests of f are not counted as want.
	check := func(t *testing.T, store *faultstore.Store, want string, f func(t *testing.T, address string)) {
		t.Helper()
		c := Config{Store: store, RequestTimeout: 10 * time.Second}
		c.Sequencers.Layout, c.Sequencers.Window = firn.Default(), time.Minute
		s, address := served(t, c)
		f(t, address)
		wantOutcomes(t, s, want)
	}
	next := func(ctx context.Context, t *testing.T, address, name string) error {
		conn := nettest.DialGRPC(t, address)
		_, err := firnv1.NewIDsClient(conn).Next(ctx, &firnv1.NextRequest{Sequencer: name})
		return err
	}
	all := func(t *testing.T, store *faultstore.Store, outcome string, problem *service.Problem) {
		t.Helper()
		kind := problem.Kind
		check(t, store, fmt.Sprintf("grpc %s, http %[1]s, resp %[1]s", outcome), func(t *testing.T, address string) {
			st := status.Convert(next(t.Context(), t, address, "orders"))
			answers := []string{fmt.Sprint(st.Details(), st.Message())}
			if kind != service.NoProblem && st.Code() != kind.Code() {
				t.Errorf("gRPC: %v, want %v", st.Code(), kind.Code())
			}
			for _, request := range []string{"POST /v1/sequencers/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n", "NEXT orders\r\n"} {
				conn := nettest.Dial(t, address)
				fmt.Fprint(conn, request)
				answer := make([]byte, 4<<10)
				n, _ := conn.Read(answer) // an answer, or the end after a panic
				answers = append(answers, string(answer[:n]))
			}
			for _, answer := range answers {
				if kind != service.NoProblem && (!strings.Contains(answer, kind.String()) || strings.Contains(answer, "10.0.0.1")) {
					t.Errorf("the answer is %q, want %s without secrets", answer, kind)
				}
			}
			if kind != service.NoProblem && (!strings.Contains(answers[1], fmt.Sprintf("HTTP/1.1 %d ", kind.Status())) || !strings.HasPrefix(answers[2], "-"+kind.RESP()+" ")) {
				t.Errorf("%s: the answers are %q", kind, answers)
			}
			retry := int(math.Ceil(problem.Retry.Seconds())) // never rounded down, to 0 for one
			delay := strings.ReplaceAll(fmt.Sprintf("retry_delay:{%v}", durationpb.New(problem.Retry)), "  ", " ")
			for i, want := range []string{delay, fmt.Sprintf("Retry-After: %d\r\n", retry), fmt.Sprintf("; retry after %d s\r\n", retry)} {
				if strings.Contains(strings.ReplaceAll(answers[i], "  ", " "), want) != (retry > 0) {
					t.Errorf("%s: the answer is %q, want %q: %t", kind, answers[i], want, retry > 0)
				}
			}
		})
	}
	for _, row := range backendErrors {
		problem := service.ProblemOf(row.err, time.Second, false)
		if problem.Kind == service.Internal {
			problem = service.ProblemOf(firn.ErrUnavailable, time.Second, false) // the error is the store's
		}
		t.Run(problem.Kind.String(), func(t *testing.T) {
			all(t, moody(func(context.Context) error { return row.err }), row.outcome, problem)
		})
	}
	t.Run("ok", func(t *testing.T) { all(t, moody(nil), "ok", &service.Problem{Kind: service.NoProblem}) })
	t.Run("panic", func(t *testing.T) {
		all(t, moody(func(context.Context) error { panic("store") }), "failed", &service.Problem{Kind: service.NoProblem})
	})
	t.Run("the client leaves", func(t *testing.T) {
		asked := make(chan struct{}, 100)
		check(t, hanging(asked), "grpc cancelled, http cancelled", func(t *testing.T, address string) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-asked; cancel() }()
			_ = next(ctx, t, address, "orders-1")

			conn := nettest.Dial(t, address)
			fmt.Fprint(conn, "POST /v1/sequencers/orders-2/next HTTP/1.1\r\nHost: localhost\r\n\r\n")
			<-asked
			_ = conn.Close()
		})
	})
	t.Run("a deadline passes", func(t *testing.T) {
		asked := make(chan struct{}, 100)
		check(t, hanging(asked), "grpc cancelled", func(t *testing.T, address string) {
			for d, arrived := 10*time.Millisecond, false; !arrived; d *= 2 { // until the call arrives in time
				ctx, cancel := context.WithTimeout(t.Context(), d)
				_ = next(ctx, t, address, fmt.Sprintf("orders-%d", d))
				cancel()
				select {
				case <-asked:
					arrived = true
				default:
				}
			}
		})
	})
}

// TestStoreFailuresAreFailures: whatever is asked while the store fails, and
// however it fails, counts as failed over every protocol, and never as refused.
func TestStoreFailuresAreFailures(t *testing.T) {
	for how, fail := range map[string]func(*faultstore.Store){
		"refuses":  func(s *faultstore.Store) { s.Cut.Store(true) },
		"not sent": func(s *faultstore.Store) { s.Err = grant.NotSent(errors.New("connection refused")); s.Cut.Store(true) },
		"hangs":    func(s *faultstore.Store) { s.Hangs.Store(true) },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			store := &faultstore.Store{Store: new(memstore.Store)}
			s, address := served(t, Config{Store: store, RequestTimeout: 300 * time.Millisecond})
			fail(store)
			var calls sync.WaitGroup
			for _, request := range []string{
				"POST /v1/sequencers/orders/next", "GET /v1/sequencers", "GET /v1/sequencers/orders", "PUT /v1/sequencers/orders", "DELETE /v1/sequencers/orders",
				"POST /v1/sequencers/orders/attach", "POST /v1/sequencers/orders/detach", "GET /v1/members", "GET /v1/inspect/1?sequencer=orders", "GET /readyz",
			} {
				calls.Go(func() {
					method, path, _ := strings.Cut(request, " ")
					body := ""
					if method == "PUT" {
						body = "{}"
					}
					code, answer := send(t, address, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body))
					if code != http.StatusServiceUnavailable {
						t.Errorf("%s: %d %s", request, code, answer)
					}
				})
			}
			conn := nettest.DialGRPC(t, address)
			for method, m := range map[string]proto.Message{
				"IDs/Next":           &firnv1.NextRequest{Sequencer: "orders"},
				"Sequencers/List":    &firnv1.ListRequest{},
				"Sequencers/Get":     &firnv1.GetRequest{Name: "orders"},
				"Sequencers/Create":  &firnv1.CreateRequest{Name: "orders"},
				"Sequencers/Attach":  &firnv1.AttachRequest{Name: "orders"},
				"Sequencers/Detach":  &firnv1.DetachRequest{Name: "orders"},
				"Sequencers/Destroy": &firnv1.DestroyRequest{Name: "orders"},
			} {
				calls.Go(func() {
					err := conn.Invoke(t.Context(), "/firn.v1."+method, m, new(emptypb.Empty))
					if status.Code(err) != codes.Unavailable {
						t.Errorf("%s: %v", method, err)
					}
				})
			}
			for _, command := range []string{"NEXT orders", "INCR orders", "INSPECT 1 SEQUENCER orders"} {
				calls.Go(func() {
					if answer := talk(t, address, command+"\r\n"); !strings.HasPrefix(answer, "-UNAVAILABLE ") {
						t.Errorf("%s: %q", command, answer)
					}
				})
			}
			calls.Wait()
			wantOutcomes(t, s, "grpc failed, http failed, resp failed, resp ok") // the last is QUIT
		})
	}
}

// wantOutcomes waits until a server has counted these outcomes.
func wantOutcomes(t *testing.T, s *Server, want string) {
	t.Helper()
	for begin, counted := time.Now(), ""; counted != want; time.Sleep(time.Millisecond) {
		if counted = outcomes(s); time.Since(begin) > 20*time.Second {
			t.Fatalf("counted %s, want %s", counted, want)
		}
	}
}

// outcomes returns the outcomes that a server has counted, such as
// "grpc failed, http ok".
func outcomes(s *Server) string {
	w := httptest.NewRecorder()
	s.metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var found []string
	for line := range strings.Lines(w.Body.String()) {
		var outcome, protocol string
		var n int
		line = strings.NewReplacer("{", " ", "}", " ", `"`, " ", ",", " ").Replace(line)
		if _, err := fmt.Sscanf(line, "firn_requests_total outcome= %s protocol= %s %d", &outcome, &protocol, &n); err == nil && n > 0 {
			found = append(found, protocol+" "+outcome)
		}
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}
