package tracing

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/stats"
)

// TestRequestedSampler floods the sampler with requests whose clients ask to be traced.
func TestRequestedSampler(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := &requestedSampler{Sampler: trace.NeverSample(), now: func() time.Time { return now }}
	for range 2 {
		sampled := 0
		for range 3 * maxRequested {
			if s.ShouldSample(trace.SamplingParameters{ParentContext: context.Background()}).Decision == trace.RecordAndSample {
				sampled++
			}
		}
		if sampled != maxRequested {
			t.Errorf("%d of %d requests were sampled in a second, want %d", sampled, 3*maxRequested, maxRequested)
		}
		now = now.Add(time.Second)
	}
}

func TestShortPath(t *testing.T) {
	long := strings.Repeat("x", maxPath-1)
	for path, want := range map[string]string{
		"/v1/sequencers/orders/next": "/v1/sequencers/orders/next",
		"/v1/\xff\xfe/é":             "/v1/\uFFFD/é",
		long + "é":                   long + "\uFFFD",
	} {
		if got := shortPath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

func TestHasSpan(t *testing.T) {
	for method, want := range map[string]bool{
		"/firn.v1.IDs/Next":                true,
		"/firn.v1.IDs/\xff":                false,
		"/" + strings.Repeat("x", maxPath): false,
		"/grpc.health.v1.Health/Check":     false,
	} {
		if got := hasSpan(&stats.RPCTagInfo{FullMethodName: method}); got != want {
			t.Errorf("%q: %t", method, got)
		}
	}
}
