package tracing

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/stats"

	"github.com/firnid/firn/internal/test/must"
)

// TestSampler: whatever a client sends, it is traced no more often than
// maxRequested times a second beyond the operator's share.
func TestSampler(t *testing.T) {
	const share = 0.1
	for _, row := range []struct {
		name, arg string
		share     float64 // of requests without a trace
		obeys     bool    // a client that wants its trace recorded, or not
		byTraceID bool
	}{
		{"", "0.1", share, true, false},
		{"", "", defaultRatio, true, false},
		{"", "NaN", defaultRatio, true, false},
		{"", "-1", defaultRatio, true, false},
		{"parentbased_traceidratio", "0.1", share, true, false},
		{"parentbased_always_off", "", 0, true, false},
		{"traceidratio", "0.1", share, false, true},
		{"always_off", "", 0, false, false},
		{"always_on", "", 1, false, false},
	} {
		t.Setenv("OTEL_TRACES_SAMPLER", row.name)
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", row.arg)
		tracer := New(trace.NewTracerProvider(must.Get(sampler())(t)...), "")
		for _, client := range []struct {
			id      string
			sampled bool
		}{{"00000000000000000000000000000001", true}, {"ff00000000000000ff00000000000000", true},
			{"00000000000000000000000000000001", false}, {"ff00000000000000ff00000000000000", false}} {
			least, most := 0, 0
			if row.byTraceID || row.obeys && client.sampled || row.share == 1 {
				beyond := row.share * (requests - maxRequested) // of those beyond the limit
				most = int(beyond+7*math.Sqrt(beyond)) + 7      // which chance hardly exceeds
			}
			if row.byTraceID && client.id[0] == '0' || row.obeys && client.sampled || row.share == 1 {
				least, most = maxRequested, maxRequested+most
			}
			flags := map[bool]string{true: "-01", false: "-00"}[client.sampled]
			header := propagation.MapCarrier{"traceparent": "00-" + client.id + "-0000000000000001" + flags}
			synctest.Test(t, func(t *testing.T) {
				for range 2 { // in one second, and again in the next
					time.Sleep(time.Second)
					if n := sampled(t, tracer, header); n < least || n > most {
						t.Errorf("%q %q, %d of %d requests with %s were sampled, want %d to %d", row.name, row.arg, n, requests, header, least, most)
					}
				}
			})
		}
	}
	t.Setenv("OTEL_TRACES_SAMPLER", "xray")
	if _, _, err := Start(t.Context(), Config{Endpoint: "http://localhost:4317"}); err == nil || !strings.Contains(err.Error(), "OTEL_TRACES_SAMPLER") {
		t.Errorf("another sampler: %v", err)
	}
}

const requests = 3 * maxRequested

// sampled returns how many of the requests with this header are sampled.
func sampled(t *testing.T, tracer *Tracer, header propagation.MapCarrier) (n int) {
	for range requests {
		_, span := tracer.tracer.Start(tracer.propagate.Extract(t.Context(), header), "request")
		if span.SpanContext().IsSampled() {
			n++
		}
	}
	return n
}

// TestTraceState: it is passed on up to a length.
func TestTraceState(t *testing.T) {
	for _, row := range []struct {
		members, size int
		kept          bool
	}{{1, 3, true}, {2, 252, true}, {3, 200, false}, {32, 200, false}} {
		var all []string
		for i := range row.members {
			all = append(all, fmt.Sprintf("k%d=%s", i, strings.Repeat("z", row.size)))
		}
		h := http.Header{"Traceparent": {"00-0123456789abcdef0123456789abcdef-fedcba9876543210-01"}, "Tracestate": {strings.Join(all, ",")}}
		ctx := new(limitedContext).Extract(t.Context(), propagation.HeaderCarrier(h))
		sent := make(http.Header)
		new(limitedContext).Inject(ctx, propagation.HeaderCarrier(sent))
		want := ""
		if row.kept {
			want = h.Get("Tracestate")
		}
		if sent.Get("Tracestate") != want || sent.Get("Traceparent") != h.Get("Traceparent") || !api.SpanContextFromContext(ctx).IsRemote() {
			t.Errorf("%d members of %d bytes: %v, want the tracestate %q", row.members, row.size, sent, want)
		}
	}
}

func TestHasSpan(t *testing.T) {
	for method, want := range map[string]bool{
		"/firn.v1.IDs/Next":            true,
		"/firn.v1.IDs/\xff":            false,
		"/" + strings.Repeat("x", 256): false,
		"/grpc.health.v1.Health/Check": false,
	} {
		if got := hasSpan(&stats.RPCTagInfo{FullMethodName: method}); got != want {
			t.Errorf("%q: %t", method, got)
		}
	}
}
