package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	api "go.opentelemetry.io/otel/trace"
)

// defaultRatio is the default share of requests that are traced. It is small: a
// server makes many IDs, and one request is like another.
const defaultRatio = 0.01

// Config says where traces go. OpenTelemetry's own variables in the process's
// environment set everything else: OTEL_EXPORTER_OTLP_…, OTEL_TRACES_SAMPLER,
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES.
type Config struct {
	// Endpoint is the collector: a URL, with TLS if its scheme is https and
	// without if it is http, or HOST:PORT. "" means
	// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT; if
	// neither is set, nothing is traced.
	Endpoint string

	// Version is the version of Firn.
	Version string

	// Logger receives a message when the collector does not accept traces, and
	// when it does again; nil discards them.
	Logger *slog.Logger
}

// Check returns an error if the Endpoint is invalid.
func (c *Config) Check() error {
	_, err := c.url()
	return err
}

// getenv returns the first of these variables that is set.
func getenv(names ...string) string {
	for _, name := range names {
		if v := strings.TrimSpace(os.Getenv(name)); v != "" {
			return v
		}
	}
	return ""
}

// enabled reports whether anything is to be traced.
func (c *Config) enabled() (bool, error) {
	exporter := getenv("OTEL_TRACES_EXPORTER")
	switch {
	case strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true"):
		return false, nil
	case c.Endpoint != "" || exporter == "otlp":
		return true, nil
	case exporter != "" && exporter != "none":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER is %.100q: it must be otlp or none", exporter)
	}
	return exporter == "" && getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") != "", nil
}

// url returns the Endpoint with a scheme, and with the usual path if it has
// none; "" if there is no Endpoint.
func (c *Config) url() (string, error) {
	text := c.Endpoint
	if text == "" {
		return "", nil
	}
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return "", fmt.Errorf("%.200q is neither a URL such as http://localhost:4317 nor HOST:PORT", c.Endpoint)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// A Tracer makes spans. It must be made by New; a nil Tracer traces nothing. It
// is safe for concurrent use.
type Tracer struct {
	provider  api.TracerProvider
	tracer    api.Tracer
	propagate propagation.TextMapPropagator
}

// New returns the Tracer of a provider, or nil if the provider is nil.
func New(p api.TracerProvider, version string) *Tracer {
	if p == nil {
		return nil
	}
	return &Tracer{
		provider: p, propagate: newContext(),
		tracer: p.Tracer("github.com/firnid/firn/server/internal/server", api.WithInstrumentationVersion(version)),
	}
}

// endLimit bounds the time for sending the remaining spans at the end.
const endLimit = 3 * time.Second

// Start makes a provider of spans, which it sends to the collector, or returns
// nil if nothing is to be traced. It does not wait for the collector. end sends
// the remaining spans.
func Start(ctx context.Context, c Config) (_ api.TracerProvider, end func(), err error) {
	end = func() {}
	if on, err := c.enabled(); !on || err != nil {
		return nil, end, err
	}
	sampler, err := sampler()
	if err != nil {
		return nil, end, err
	}
	exporter, err := c.exporter(ctx)
	if err != nil {
		return nil, end, err
	}
	about, err := c.resource(ctx)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) && !errors.Is(err, resource.ErrSchemaURLConflict) {
		_ = exporter.Shutdown(ctx)
		return nil, end, err
	}
	log := cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	batcher := trace.WithBatcher(&loggingExporter{SpanExporter: exporter, log: log})
	p := trace.NewTracerProvider(append(sampler, batcher, trace.WithResource(about))...)
	return p, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			log.Warn("tracing: the last spans are lost", "error", err)
		}
	}, nil
}

// exporter returns the exporter that sends to the collector. Without an
// Endpoint, it reads the variables itself.
func (c *Config) exporter(ctx context.Context) (trace.SpanExporter, error) {
	at, err := c.url()
	if err != nil {
		return nil, err
	}
	var overGRPC []otlptracegrpc.Option
	var overHTTP []otlptracehttp.Option
	if at != "" {
		overGRPC, overHTTP = append(overGRPC, otlptracegrpc.WithEndpointURL(at)), append(overHTTP,
			otlptracehttp.WithEndpointURL(at))
	}
	switch v := getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); v {
	case "", "grpc":
		return otlptracegrpc.New(ctx, overGRPC...)
	case "http/protobuf":
		return otlptracehttp.New(ctx, overHTTP...)
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %.100q: it must be grpc or http/protobuf", v)
	}
}

// resource returns the resource of all spans.
func (c *Config) resource(ctx context.Context) (*resource.Resource, error) {
	attrs := []attribute.KeyValue{semconv.ServiceName("firn")}
	if c.Version != "" {
		attrs = append(attrs, semconv.ServiceVersion(c.Version))
	}
	if host, err := os.Hostname(); err == nil {
		attrs = append(attrs, semconv.ServiceInstanceID(host+":"+strconv.Itoa(os.Getpid())))
	}
	// Later options override earlier ones.
	return resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithAttributes(attrs...),
		resource.WithFromEnv())
}

// A loggingExporter logs the failures of an exporter, instead of using the
// process-wide error handler.
type loggingExporter struct {
	trace.SpanExporter
	log    *slog.Logger
	failed atomic.Bool // since the last success
}

func (r *loggingExporter) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err == nil && r.failed.Swap(false):
		r.log.InfoContext(ctx, "tracing: the collector accepts spans again")
	case err != nil && !r.failed.Swap(true):
		r.log.WarnContext(ctx, "tracing: the collector does not accept spans; they are lost until it does",
			"error", err)
	}
	return nil
}
