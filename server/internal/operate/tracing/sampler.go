package tracing

import (
	"context"
	"fmt"
	"slices"
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

const samplerEnv = "OTEL_TRACES_SAMPLER"

// sampler returns what decides which requests are traced: nothing if the
// variable names it, which a provider reads itself.
func sampler() ([]trace.TracerProviderOption, error) {
	if name := getenv(samplerEnv); name != "" {
		if !slices.Contains([]string{"always_on", "always_off", "traceidratio"}, strings.TrimPrefix(name, "parentbased_")) {
			return nil, fmt.Errorf("%s is %.100q: it must be always_on, always_off or traceidratio, or one of "+
				"these after parentbased_", samplerEnv, name)
		}
		return nil, nil
	}
	return []trace.TracerProviderOption{trace.WithSampler(trace.ParentBased(byRatio(defaultRatio)))}, nil
}

// byRatio returns the sampler of the share that the environment names.
func byRatio(otherwise float64) trace.Sampler {
	if share, err := strconv.ParseFloat(getenv(samplerEnv+"_ARG"), 64); err == nil && share >= 0 && share <= 1 {
		otherwise = share
	}
	return trace.TraceIDRatioBased(otherwise)
}

// A limitedContext is a trace context without a long tracestate. It limits how
// many requests a second are sampled because of what their clients send: that a
// trace is sampled, or an ID whose digits decide it. Beyond that, a request
// begins a trace of its own.
type limitedContext struct {
	propagation.TraceContext
	obeys bool          // the sampler obeys clients
	byID  trace.Sampler // if the ID of the client's trace decides

	mu     sync.Mutex // guards the fields below
	second int64      // Unix time
	count  int        // requests in that second
}

func newContext() *limitedContext {
	name := getenv(samplerEnv)
	c := &limitedContext{obeys: name == "" || strings.HasPrefix(name, "parentbased_")}
	if name == "traceidratio" {
		c.byID = byRatio(1)
	}
	return c
}

// Extract implements propagation.TextMapPropagator.
func (c *limitedContext) Extract(ctx context.Context, from propagation.TextMapCarrier) context.Context {
	with := c.TraceContext.Extract(ctx, from)
	span := api.SpanContextFromContext(with)
	switch {
	case !span.IsValid():
	case (c.obeys && span.IsSampled() || c.samples(span.TraceID())) && !c.take():
		return ctx
	case span.TraceState().Len() > 0 && len(span.TraceState().String()) > maxTraceState:
		return api.ContextWithRemoteSpanContext(with, span.WithTraceState(api.TraceState{}))
	}
	return with
}

// samples reports whether the ID of a client's trace has it sampled.
func (c *limitedContext) samples(id api.TraceID) bool {
	return c.byID != nil &&
		c.byID.ShouldSample(trace.SamplingParameters{TraceID: id}).Decision == trace.RecordAndSample
}

func (c *limitedContext) take() bool {
	second := time.Now().Unix()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.second != second {
		c.second, c.count = second, 0
	}
	c.count++
	return c.count <= maxRequested
}
