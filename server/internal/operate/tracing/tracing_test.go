package tracing

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/protocol/httpapi"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/tracingtest"
)

// start starts a Tracer; env are names and values of variables.
func start(t *testing.T, c Config, env ...string) *Tracer {
	t.Helper()
	for i := 0; i < len(env); i += 2 {
		t.Setenv(env[i], env[i+1])
	}
	p, _, err := Start(t.Context(), c)
	if err != nil || p == nil {
		t.Fatalf("%v, %v", p, err)
	}
	return New(p, c.Version)
}

const shareEnv = "OTEL_TRACES_SAMPLER_ARG"

// flush ends the provider of a Tracer, so that everything is sent.
func flush(t *testing.T, tracer *Tracer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), must.Patience)
	defer cancel()
	must.Do(t, tracer.provider.(*trace.TracerProvider).Shutdown(ctx))
}

// TestNoTracingByDefault: by default nothing is traced, and that costs nothing.
func TestNoTracingByDefault(t *testing.T) {
	for i, env := range [][2]string{
		{"OTEL_SERVICE_NAME", "x"}, {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://localhost:1"}, {"OTEL_TRACES_EXPORTER", "none"}, {"OTEL_SDK_DISABLED", "true"},
	} {
		if t.Setenv(env[0], env[1]); i > 1 {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1")
		}
		if tracer, _, err := Start(t.Context(), Config{}); tracer != nil || err != nil {
			t.Errorf("%s: %v, %v", env, tracer, err)
		}
		t.Setenv(env[0], "")
	}
	var off *Tracer
	s := new(memstore.Store)
	if off.HTTP(true) != nil || off.RESP() != nil || off.GRPCServer() != nil || off.Inject() != nil || off.Store(s) != grant.Store(s) {
		t.Error("a Tracer of nothing does something")
	}
}

func TestCheck(t *testing.T) {
	for endpoint, isValid := range map[string]bool{
		"": true, "http://localhost:4317": true, "localhost:4317": true, "https://[::1]:4317": true, "https://collector.example/otlp/v1/traces": true,
		"ftp://localhost:4317": false, "http://user:secret@localhost:4317": false, "http://": false, "a b:1": false, "http://localhost?x=y": false,
	} {
		if err := (&Config{Endpoint: endpoint}).Check(); (err == nil) != isValid || err != nil && !strings.Contains(err.Error(), "is neither a URL") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	for name, want := range map[string]string{"OTEL_TRACES_EXPORTER": "must be otlp or none", "OTEL_EXPORTER_OTLP_PROTOCOL": "must be grpc or http/protobuf"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1")
			t.Setenv(name, "thrift")
			if _, _, err := Start(t.Context(), Config{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

// TestProtocols: spans come to a collector over both protocols, with what the
// server is.
func TestProtocols(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		for _, given := range []bool{true, false} {
			c := tracingtest.New(t)
			at := "http://" + map[string]string{"grpc": c.GRPC, "http/protobuf": c.HTTP}[protocol]
			config := Config{Version: "v9"}
			t.Setenv("OTEL_SERVICE_NAME", "ids")
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "a=b")
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", at)
			if given {
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1")
				config.Endpoint = at
			}
			tracer := start(t, config, shareEnv, "1", "OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			_, end := tracer.RESP()(t.Context())
			end("next", 3, 12, 1)
			flush(t, tracer)
			spans := c.Spans()
			if len(spans) != 1 {
				t.Fatalf("%s: %d spans", protocol, len(spans))
			}
			s := spans[0]
			if s.Name != "RESP next" || s.Kind != "SERVER" || s.Failed || s.Attributes["firn.commands"] != "3" || s.Attributes["firn.ids"] != "12" || s.Attributes["firn.errors"] != "1" {
				t.Errorf("%s: %+v", protocol, s)
			}
			if s.Resource["service.name"] != "ids" || s.Resource["service.version"] != "v9" || !strings.HasSuffix(s.Resource["service.instance.id"], ":"+strconv.Itoa(os.Getpid())) || s.Resource["a"] != "b" {
				t.Errorf("%s: the resource is %v", protocol, s.Resource)
			}
		}
	}
}

// TestHTTP: a request is a child of its client's span, and the client says
// whether it is traced; without one, the ratio does.
func TestHTTP(t *testing.T) {
	const parent = "00-0123456789abcdef0123456789abcdef-fedcba9876543210-"
	c := tracingtest.New(t)
	backend := must.Get(service.NewStaticBackend(service.StaticBackendConfig{}))(t)
	get := func(share, path, traceparent string) (status int) {
		tracer := start(t, Config{Endpoint: "http://" + c.GRPC}, shareEnv, share)
		h := httpapi.NewHandler(httpapi.Config{Front: service.Front{Backend: backend}, Trace: tracer.HTTP(true)})
		w := nettest.Ask(h, "GET", path, "", "X-Request-Id: x1", "Traceparent: "+traceparent)
		flush(t, tracer)
		return w.Code
	}
	const next = "/v1/sequencers/orders/next"
	seen := 0
	for _, tt := range []struct {
		share, path, traceparent string
		spans                    int
	}{
		{"1", next, "", 1}, {"0", next, "", 0}, {"0", next, parent + "01", 1}, {"1", next, parent + "00", 0},
		{"1", next, "nonsense", 1}, {"1", "/healthz", parent + "01", 0}, {"1", "/nowhere", "", 0}, {"1", next + "?count=0", "", 1},
	} {
		status := get(tt.share, tt.path, tt.traceparent)
		spans := c.Spans()[seen:]
		seen += len(spans)
		if len(spans) != tt.spans {
			t.Errorf("%s with %q: %d spans, want %d", tt.path, tt.traceparent, len(spans), tt.spans)
			continue
		}
		if tt.spans == 0 {
			continue
		}
		s := spans[0]
		wantTrace, wantParent := s.Trace, ""
		if tt.traceparent == parent+"01" {
			wantTrace, wantParent = "0123456789abcdef0123456789abcdef", "fedcba9876543210"
		}
		wantStatus := "200"
		if status != 200 {
			wantStatus = "400"
		}
		if s.Trace != wantTrace || s.Parent != wantParent || s.Name != "GET /v1/sequencers/{name}/next" || s.Kind != "SERVER" || s.Failed ||
			s.Attributes["http.route"] != "/v1/sequencers/{name}/next" || s.Attributes["http.response.status_code"] != wantStatus ||
			s.Attributes["url.path"] != next || s.Attributes["url.scheme"] != "https" || s.Attributes["firn.request_id"] != "x1" {
			t.Errorf("%s with %q: %+v", tt.path, tt.traceparent, s)
		}
	}
}

// TestStore: each call of a store has a span.
func TestStore(t *testing.T) {
	c := tracingtest.New(t)
	tracer := start(t, Config{Endpoint: "http://" + c.GRPC}, shareEnv, "1")
	s := tracer.Store(new(memstore.Store))
	ctx := t.Context()
	for _, next := range []string{"a", "b"} {
		must.Get(s.CAS(ctx, "k", nil, []byte(next)))(t)
	}
	if v, err := s.Get(ctx, "k"); err != nil || string(v) != "a" {
		t.Errorf("%q, %v", v, err)
	}
	must.Do(t, s.List(ctx, "k", func(string, []byte) bool { return true }))
	if v, err := s.(grant.MultiGetter).GetMany(ctx, []string{"k"}); err != nil || string(v[0]) != "a" {
		t.Errorf("%q, %v", v, err)
	}
	failing := &faultstore.Store{Store: new(memstore.Store)}
	failing.Cut.Store(true)
	if _, err := tracer.Store(failing).CAS(ctx, "k", nil, []byte("a")); err == nil {
		t.Error("no error")
	}
	flush(t, tracer)
	var got []string
	for _, span := range c.Spans() {
		text := span.Name + " " + span.Attributes["firn.store.key"] + " " + span.Attributes["firn.cas.result"]
		if span.Failed {
			text += " failed"
		}
		got = append(got, strings.Join(strings.Fields(text), " "))
		if span.Kind != "CLIENT" {
			t.Errorf("%+v", span)
		}
	}
	if got, want := strings.Join(got, ", "), "store cas k applied, store cas k refused, store get k, store list k, store get many, store cas k unknown failed"; got != want {
		t.Errorf("spans %s, want %s", got, want)
	}
}

// TestCollectorRefuses: a refusal is logged once, and that the collector
// accepts spans again too. Nothing else is disturbed, and Shutdown ends.
func TestCollectorRefuses(t *testing.T) {
	var out bytes.Buffer
	c := tracingtest.New(t)
	tracer := start(t, Config{Endpoint: "http://" + c.GRPC, Logger: slog.New(slog.NewTextHandler(&out, nil))}, shareEnv, "1")
	span := func() {
		t.Helper()
		_, end := tracer.RESP()(t.Context())
		end("next", 1, 0, 0)
		ctx, cancel := context.WithTimeout(t.Context(), must.Patience)
		defer cancel()
		must.Do(t, tracer.provider.(*trace.TracerProvider).ForceFlush(ctx))
	}
	c.Refuse(true)
	span()
	span()
	c.Refuse(false)
	span()
	span()
	flush(t, tracer)
	if n := len(c.Spans()); n != 2 {
		t.Errorf("%d spans, want 2", n)
	}
	if got := out.String(); strings.Count(got, "level=WARN") != 1 || strings.Count(got, "level=INFO") != 1 || strings.Count(got, "\n") != 2 {
		t.Errorf("the log is\n%s", got)
	}
}

// TestShutdownEnds: a collector that does not answer does not hold the end up.
func TestShutdownEnds(t *testing.T) {
	block := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-block:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(block)
	tracer := start(t, Config{Endpoint: server.URL}, shareEnv, "1", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	_, end := tracer.RESP()(t.Context())
	end("next", 1, 0, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := tracer.provider.(*trace.TracerProvider).Shutdown(ctx); err == nil {
		t.Log("the spans were given up before") // also fine: it has ended
	}
}

// TestLogHandler: log lines name the trace that they are of.
func TestLogHandler(t *testing.T) {
	c := tracingtest.New(t)
	tracer := start(t, Config{Endpoint: "http://" + c.GRPC}, shareEnv, "1")
	var out bytes.Buffer
	log := slog.New(requestid.NewHandler(NewHandler(slog.NewTextHandler(&out, nil))))
	ctx, end := tracer.RESP()(requestid.WithID(t.Context(), "x1"))
	log.With("a", 1).InfoContext(ctx, "inside")
	end("next", 1, 0, 0)
	log.Info("outside")
	flush(t, tracer)
	s := c.Spans()[0]
	if got, want := out.String(), "msg=inside a=1 request_id=x1 trace_id="+s.Trace+" span_id="+s.ID+"\n"; !strings.Contains(got, want) || strings.Count(got, "trace_id") != 1 {
		t.Errorf("the log is\n%swant %s", got, want)
	}
}
