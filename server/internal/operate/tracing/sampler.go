package tracing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

// maxRequested is how many requests a second are traced because of what their
// clients send. Any client can, also one without a token.
const maxRequested = 1000

// maxTraceState is the longest tracestate that is passed on, in bytes; the
// standard asks for 512. Each span has it.
const maxTraceState = 512

// sampler returns what decides which requests are traced.
func (c *Config) sampler() (trace.Sampler, error) {
	kind, ratio := "parentbased_traceidratio", defaultRatio
	if name := c.getenv("OTEL_TRACES_SAMPLER"); name != "" {
		kind, ratio = name, 1
	}
	if share, err := strconv.ParseFloat(c.getenv("OTEL_TRACES_SAMPLER_ARG"), 64); err == nil && share >= 0 && share <= 1 {
		ratio = share
	}
	kind, parentBased := strings.CutPrefix(kind, "parentbased_")
	s, ok := map[string]trace.Sampler{"always_on": trace.AlwaysSample(), "always_off": trace.NeverSample(), "traceidratio": trace.TraceIDRatioBased(ratio)}[kind]
	if !ok {
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER is %.100q: it must be always_on, always_off or traceidratio, or one of these after parentbased_", c.getenv("OTEL_TRACES_SAMPLER"))
	}
	if parentBased {
		s = trace.ParentBased(s)
	}
	limited := &limitedSampler{Sampler: s}
	return trace.ParentBased(s, trace.WithRemoteParentSampled(limited), trace.WithRemoteParentNotSampled(limited)), nil
}

// A limitedSampler limits how many requests are sampled because of what their
// clients send: that a trace is sampled, or an ID whose digits decide it.
// Beyond that, it decides as for a request without a trace.
type limitedSampler struct {
	trace.Sampler

	mu     sync.Mutex // guards the fields below
	second int64      // Unix time
	count  int        // requests in that second
}

// ShouldSample implements trace.Sampler.
func (s *limitedSampler) ShouldSample(p trace.SamplingParameters) trace.SamplingResult {
	r := s.Sampler.ShouldSample(p)
	if r.Decision == trace.Drop || s.take() {
		return r
	}
	p.ParentContext = context.Background()
	for i := range p.TraceID {
		p.TraceID[i] = byte(rand.Uint32())
	}
	state := r.Tracestate
	r = s.Sampler.ShouldSample(p)
	r.Tracestate = state
	return r
}

func (s *limitedSampler) take() bool {
	second := time.Now().Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.second != second {
		s.second, s.count = second, 0
	}
	s.count++
	return s.count <= maxRequested
}

// A shortContext is a trace context without a long tracestate.
type shortContext struct{ propagation.TraceContext }

// Extract implements propagation.TextMapPropagator.
func (s shortContext) Extract(ctx context.Context, from propagation.TextMapCarrier) context.Context {
	ctx = s.TraceContext.Extract(ctx, from)
	if span := api.SpanContextFromContext(ctx); span.TraceState().Len() > 0 && len(span.TraceState().String()) > maxTraceState {
		ctx = api.ContextWithRemoteSpanContext(ctx, span.WithTraceState(api.TraceState{}))
	}
	return ctx
}
