package tracing

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
)

// maxRequested is how many requests a second are traced because their clients ask
// for it. Any client can, also one without a token.
const maxRequested = 1000

// A requestedSampler samples the requests whose clients ask to be traced.
type requestedSampler struct {
	trace.Sampler // for requests beyond maxRequested
	now           func() time.Time

	mu     sync.Mutex // guards the fields below
	second int64      // Unix time
	count  int        // requests in that second
}

// ShouldSample implements trace.Sampler.
func (s *requestedSampler) ShouldSample(p trace.SamplingParameters) trace.SamplingResult {
	if s.take() {
		return trace.AlwaysSample().ShouldSample(p)
	}
	return s.Sampler.ShouldSample(p)
}

func (s *requestedSampler) take() bool {
	second := s.now().Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.second != second {
		s.second, s.count = second, 0
	}
	s.count++
	return s.count <= maxRequested
}
