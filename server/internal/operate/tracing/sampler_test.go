package tracing

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/stats"

	"github.com/firnid/firn/internal/must"
)

// TestSampler: whatever a client sends, it is traced no more often than
// maxRequested times a second beyond the operator's share.
func TestSampler(t *testing.T) { synctest.Test(t, testSampler) }

func testSampler(t *testing.T) {
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
		{"parentbased_always_on", "", 1, true, false},
		{"traceidratio", "0.1", share, false, true},
		{"traceidratio", "x", 1, false, false},
		{"always_off", "", 0, false, false},
		{"always_on", "", 1, false, false},
	} {
		c := Config{Getenv: env(row.arg, "OTEL_TRACES_SAMPLER", row.name)}
		whole := must.Get(c.sampler())(t)
		for _, client := range []struct {
			sampled bool
			id      api.TraceID
		}{{true, api.TraceID{15: 1}}, {true, api.TraceID{0: 255, 8: 255}}, {false, api.TraceID{15: 1}}, {false, api.TraceID{0: 255, 8: 255}}} {
			parent := api.NewSpanContext(api.SpanContextConfig{TraceID: client.id, SpanID: api.SpanID{1}, Remote: true, TraceFlags: api.TraceFlags(0).WithSampled(client.sampled)})
			ctx := api.ContextWithRemoteSpanContext(t.Context(), parent)
			const requests = 20 * maxRequested
			for range 2 { // in one second, and again in the next
				time.Sleep(time.Second)
				n := 0
				for range requests {
					if whole.ShouldSample(trace.SamplingParameters{ParentContext: ctx, TraceID: client.id}).Decision == trace.RecordAndSample {
						n++
					}
				}
				wants := row.obeys && client.sampled || row.byTraceID && client.id[0] == 0 || row.share == 1 && !row.obeys
				least, most := 0, 0
				if wants {
					least, most = maxRequested, maxRequested+int(row.share*1.2*(requests-maxRequested))
				}
				if n < least || n > most {
					t.Errorf("%q %q, %d of %d requests with the ID %v, sampled %t, were sampled, want %d to %d", row.name, row.arg, n, requests, client.id, client.sampled, least, most)
				}
			}
		}
	}
	if _, _, err := Start(t.Context(), Config{Endpoint: "http://localhost:4317", Getenv: env("", "OTEL_TRACES_SAMPLER", "xray")}); err == nil || !strings.Contains(err.Error(), "OTEL_TRACES_SAMPLER") {
		t.Errorf("another sampler: %v", err)
	}
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
		ctx := shortContext{}.Extract(t.Context(), propagation.HeaderCarrier(h))
		sent := make(http.Header)
		shortContext{}.Inject(ctx, propagation.HeaderCarrier(sent))
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
