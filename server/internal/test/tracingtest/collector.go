// Package tracingtest is a trace collector for tests: it listens on loopback
// for OTLP, over gRPC and HTTP, and keeps the spans that it receives.
package tracingtest

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/firnid/firn/server/internal/test/nettest"
)

// A Span is a received span.
type Span struct {
	Trace, ID, Parent string // hex; the Parent of a root is empty
	Name              string
	Kind              string            // such as SERVER
	Failed            bool              // its status is an error
	Attributes        map[string]string // as text
	Resource          map[string]string // of the sender
}

// A Collector keeps spans. It must be made by New, and is safe for concurrent
// use.
type Collector struct {
	GRPC, HTTP string // its addresses: HOST:PORT

	mu     sync.Mutex // guards the fields below
	spans  []Span
	refuse bool
}

// New starts a Collector, which ends with the test.
func New(t testing.TB) *Collector {
	t.Helper()
	c := new(Collector)
	var serving sync.WaitGroup
	forGRPC, forHTTP := nettest.Listen(t), nettest.Listen(t)
	c.GRPC, c.HTTP = forGRPC.Addr().String(), forHTTP.Addr().String()
	rpc := grpc.NewServer()
	collector.RegisterTraceServiceServer(rpc, service{collector: c})
	serving.Go(func() { _ = rpc.Serve(forGRPC) })
	web := &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second}
	serving.Go(func() { _ = web.Serve(forHTTP) })
	t.Cleanup(func() {
		rpc.Stop()
		_ = web.Close()
		serving.Wait()
	})
	return c
}

// Refuse makes the Collector refuse requests, or accept them again.
func (c *Collector) Refuse(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = on
}

// Spans returns the spans received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

type service struct {
	collector.UnimplementedTraceServiceServer
	collector *Collector
}

func (s service) Export(_ context.Context, r *collector.ExportTraceServiceRequest,
) (*collector.ExportTraceServiceResponse, error) {
	if !s.collector.take(r) {
		return nil, status.Error(codes.InvalidArgument, "the test refuses it")
	}
	return new(collector.ExportTraceServiceResponse), nil
}

// ServeHTTP receives spans over HTTP.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	q := new(collector.ExportTraceServiceRequest)
	if err == nil {
		err = proto.Unmarshal(body, q)
	}
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || !c.take(q) {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *Collector) take(r *collector.ExportTraceServiceRequest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse {
		return false
	}
	for _, of := range r.GetResourceSpans() {
		about := make(map[string]string)
		for _, a := range of.GetResource().GetAttributes() {
			about[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				span := Span{
					Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
					Parent: hex.EncodeToString(s.GetParentSpanId()),
					Name:   s.GetName(), Kind: strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_"),
					Failed:     s.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR,
					Attributes: make(map[string]string), Resource: about,
				}
				for _, a := range s.GetAttributes() {
					text := a.GetValue().GetStringValue()
					if text == "" {
						text = fmt.Sprint(a.GetValue().GetIntValue())
					}
					span.Attributes[a.GetKey()] = text
				}
				c.spans = append(c.spans, span)
			}
		}
	}
	return true
}
