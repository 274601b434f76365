//go:build linux || darwin

package main

import (
	"cmp"
	"testing"

	"github.com/firnid/firn/server/internal/test/tracingtest"
)

// TestTraceForwarded: the trace of a call that is forwarded has spans of both
// servers, each the child of the one before.
func TestTraceForwarded(t *testing.T) {
	collector := tracingtest.New(t)
	t.Setenv("OTEL_SERVICE_NAME", "ids")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0")
	has, asks := twoServers(t, "--tracing-endpoint", "http://"+collector.GRPC, "--log-level", "debug")
	const trace, client = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	if status, _, body := asks.post(t, "orders", "Traceparent", "00-"+trace+"-"+client+"-01", "X-Request-Id", "x1"); status != 200 {
		t.Fatal(status, body)
	}
	asks.stop() // sends what was not sent
	has.stop()

	all := collector.Spans()
	web := spanOf(t, all, tracingtest.Span{Trace: trace, Name: "POST /v1/sequencers/{name}/next", Kind: "SERVER", Parent: client})
	answer := spanOf(t, all, tracingtest.Span{Trace: trace, Name: "POST /v1/sequencers/{name}/next", Kind: "SERVER", Parent: web.ID})
	for _, s := range []tracingtest.Span{web, answer} {
		if s.Attributes["firn.request_id"] != "x1" || s.Resource["service.name"] != "ids" {
			t.Errorf("%+v, want the request x1 of the service ids", s)
		}
	}
	if lines := asks.lines("trace_id", trace); len(lines) == 0 || lines[0]["request_id"] != "x1" {
		t.Errorf("the log of the server that was asked has %v", lines)
	}
	for _, s := range all {
		if s.Trace != trace {
			t.Errorf("with a ratio of 0 there is %+v", s)
		}
	}
}

// spanOf returns the first span that has the non-zero fields of want.
func spanOf(t *testing.T, all []tracingtest.Span, want tracingtest.Span) tracingtest.Span {
	t.Helper()
	for _, s := range all {
		if s.Name == want.Name && s.Kind == cmp.Or(want.Kind, s.Kind) && s.Trace == cmp.Or(want.Trace, s.Trace) && s.Parent == cmp.Or(want.Parent, s.Parent) {
			return s
		}
	}
	t.Fatalf("there is no span %+v in:\n%+v", want, all)
	return want
}
