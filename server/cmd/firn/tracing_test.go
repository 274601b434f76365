//go:build linux || darwin

package main

import (
	"bufio"
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
	has, asks := twoServers(t, "--tracing-endpoint", "http://"+collector.GRPC, "--tracing-sample-ratio", "0", "--tracing-service-name", "ids", "--log-level", "debug")
	const trace, client = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	if status, _, body := asks.post(t, "orders", "Traceparent", "00-"+trace+"-"+client+"-01", "X-Request-Id", "x1"); status != 200 {
		t.Fatal(status, body)
	}
	asks.stop() // sends what was not sent
	has.stop()

	all := collector.Spans()
	find := func(name, kind, parent string) tracingtest.Span {
		t.Helper()
		i := slices.IndexFunc(all, func(s tracingtest.Span) bool {
			return s.Trace == trace && s.Name == name && s.Kind == kind && s.Parent == parent
		})
		if i < 0 {
			t.Fatalf("there is no span %s of kind %s below %s:\n%+v", name, kind, parent, all)
		}
		if all[i].Resource["service.name"] != "ids" {
			t.Errorf("%+v", all[i])
		}
		return all[i]
	}
	web := find("POST /v1/sequencers/{name}/next", "SERVER", client)
	answer := find("POST /v1/sequencers/{name}/next", "SERVER", web.ID)
	if a, b := web.Attributes["firn.request_id"], answer.Attributes["firn.request_id"]; a != "x1" || b != "x1" {
		t.Errorf("the spans have the IDs %q and %q", a, b)
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

// TestTraceRESP: the same from RESP, where the trace begins; over HTTP to the
// collector.
func TestTraceRESP(t *testing.T) {
	collector := tracingtest.New(t)
	has, asks := twoServers(t, "--tracing-endpoint", collector.HTTP, "--tracing-insecure", "--tracing-protocol", "http", "--tracing-sample-ratio", "1", "--log-level", "debug")
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
	i := slices.IndexFunc(all, func(s tracingtest.Span) bool { return s.Name == "RESP next" })
	if i < 0 {
		t.Fatalf("no span is of RESP: %+v", all)
	}
	if s := all[i]; s.Parent != "" || s.Attributes["firn.commands"] != "2" || s.Attributes["firn.ids"] != "1" {
		t.Errorf("%+v", s)
	}
	lines := asks.lines("protocol", "resp")
	if len(lines) == 0 || !slices.ContainsFunc(all, func(s tracingtest.Span) bool {
		return s.Trace == all[i].Trace && s.Parent == all[i].ID && s.Kind == "SERVER" && s.Name == "POST /v1/sequencers/{name}/next" &&
			s.Attributes["firn.request_id"] == lines[0]["request_id"]
	}) {
		t.Fatalf("no span of the other server is below %+v of the requests %v", all[i], lines)
	}
	if !slices.ContainsFunc(all, func(s tracingtest.Span) bool {
		return s.Name == "store cas" && s.Attributes["firn.cas.result"] == "applied" && s.Resource["service.name"] == "firn"
	}) {
		t.Errorf("no span is of a compare-and-swap that was applied")
	}
}
