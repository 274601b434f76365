package tracing

import (
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
)

// mostForced is how many requests a second are traced because their clients ask
// for it. Any client can, also one without a token.
const mostForced = 1000

// maxPath is the maximum length of a path in a span.
const maxPath = 256

// shortPath returns what a span has of a client's path. A collector accepts
// only UTF-8: one invalid path would lose all spans that are sent with it.
func shortPath(path string) string {
	return strings.ToValidUTF8(path[:min(len(path), maxPath)], "\uFFFD")
}

// A forced is the sampler of requests whose clients ask to be traced.
type forced struct {
	trace.Sampler // for requests beyond mostForced
	now           func() time.Time

	mu     sync.Mutex // guards the fields below
	second int64      // Unix time
	count  int        // requests in that second
}

// ShouldSample implements trace.Sampler.
func (f *forced) ShouldSample(p trace.SamplingParameters) trace.SamplingResult {
	if f.take() {
		return trace.AlwaysSample().ShouldSample(p)
	}
	return f.Sampler.ShouldSample(p)
}

func (f *forced) take() bool {
	second := f.now().Unix()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.second != second {
		f.second, f.count = second, 0
	}
	f.count++
	return f.count <= mostForced
}
