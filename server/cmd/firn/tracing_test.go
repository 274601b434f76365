//go:build linux || darwin

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/tracingtest"
)

// TestTraceForwarded: the trace of a call that is forwarded has spans of both
// servers, each the child of the one before, for HTTP and for RESP.
func TestTraceForwarded(t *testing.T) {
	collector := tracingtest.New(t)
	t.Setenv("OTEL_SERVICE_NAME", "ids")
	has, asks := twoServers(t, map[string]string{"OTEL_TRACES_SAMPLER_ARG": "0"}, "--tracing-endpoint", "http://"+collector.GRPC, "--log-level", "debug")
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

// TestTraceRESP: the same from RESP, where the trace begins; over HTTP to the
// collector.
func TestTraceRESP(t *testing.T) {
	collector := tracingtest.New(t)
	has, asks := twoServers(t, map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_TRACES_SAMPLER_ARG": "1"},
		"--tracing-endpoint", "http://"+collector.HTTP, "--log-level", "debug")
	conn, err := net.Dial("tcp", strings.TrimPrefix(asks.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(nettest.Patience))
	fmt.Fprint(conn, "NEXT orders\r\nPING\r\n")
	in := bufio.NewReader(conn)
	for line := ""; line != "+PONG\r\n"; {
		if line, err = in.ReadString('\n'); err != nil || line[0] == '-' {
			t.Fatal(line, err)
		}
	}
	conn.Close()
	asks.stop()
	has.stop()
	all := collector.Spans()
	s := spanOf(t, all, tracingtest.Span{Name: "RESP next"})
	if s.Parent != "" || s.Attributes["firn.commands"] != "2" || s.Attributes["firn.ids"] != "1" {
		t.Errorf("%+v", s)
	}
	answer := spanOf(t, all, tracingtest.Span{Trace: s.Trace, Parent: s.ID, Kind: "SERVER", Name: "POST /v1/sequencers/{name}/next"})
	if lines := asks.lines("protocol", "resp"); len(lines) == 0 || answer.Attributes["firn.request_id"] != lines[0]["request_id"] {
		t.Errorf("%+v is not of the requests %v", answer, lines)
	}
	if !slices.ContainsFunc(all, func(s tracingtest.Span) bool {
		return s.Name == "store cas" && s.Attributes["firn.cas.result"] == "applied"
	}) {
		t.Errorf("no span is of a compare-and-swap that was applied: %+v", all)
	}
}
