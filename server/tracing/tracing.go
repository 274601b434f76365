package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	api "go.opentelemetry.io/otel/trace"
)

// Protocols that a collector speaks.
const (
	GRPC = "grpc"
	HTTP = "http" // with protobuf
)

// DefaultRatio is the part of requests that is traced where nothing else is
// said: a server makes many IDs, and one request is like another.
const DefaultRatio = 0.01

// Config says where traces go. What it leaves out, the standard variables of
// OpenTelemetry say (OTEL_EXPORTER_OTLP_…, OTEL_TRACES_SAMPLER,
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES), and then the defaults.
type Config struct {
	// Endpoint is the collector: a URL, whose scheme https means TLS and http
	// none, or HOST:PORT. "" means what OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
	// OTEL_EXPORTER_OTLP_ENDPOINT says; where neither does, nothing is traced.
	Endpoint string

	// Protocol is GRPC or HTTP; "" means what OTEL_EXPORTER_OTLP_TRACES_PROTOCOL
	// or OTEL_EXPORTER_OTLP_PROTOCOL says, or else GRPC.
	Protocol string

	// Insecure lets an Endpoint without a scheme be reached without TLS.
	Insecure bool

	// Ratio is the part, 0 to 1, of requests that is traced of those whose client
	// does not say whether they are; nil means what OTEL_TRACES_SAMPLER says, or
	// else DefaultRatio.
	Ratio *float64

	// Service is the name of the service; "" means what OTEL_SERVICE_NAME says, or
	// "firn".
	Service string

	// Version is Firn's.
	Version string

	// Instance tells this server from others of its kind; "" leaves it out.
	Instance string

	// Getenv is where variables are looked for that this package reads. Others are
	// read by OpenTelemetry from the process's environment. nil means that there
	// are none.
	Getenv func(string) string

	// Log is told when the collector does not take traces, once until it does; nil
	// means nobody is.
	Log *slog.Logger
}

// Check says what is wrong with a Config, or nil.
func (c *Config) Check() error {
	_, err := c.protocol()
	if err == nil && c.Endpoint != "" {
		_, err = c.url()
	}
	if err == nil && c.Ratio != nil && !(*c.Ratio >= 0 && *c.Ratio <= 1) {
		err = fmt.Errorf("the part of requests that is traced is %v: it is from 0 to 1", *c.Ratio)
	}
	return err
}

func (c *Config) getenv(names ...string) string {
	for _, name := range names {
		if c.Getenv != nil {
			if v := strings.TrimSpace(c.Getenv(name)); v != "" {
				return v
			}
		}
	}
	return ""
}

// on reports whether anything is to be traced.
func (c *Config) on() (bool, error) {
	if strings.EqualFold(c.getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	exporter := c.getenv("OTEL_TRACES_EXPORTER")
	switch {
	case c.Endpoint != "":
		return true, nil
	case exporter == "none":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER is %.100q: there are otlp and none", exporter)
	}
	return exporter != "" || c.getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") != "", nil
}

func (c *Config) protocol() (string, error) {
	if c.Protocol == GRPC || c.Protocol == HTTP {
		return c.Protocol, nil
	}
	if c.Protocol != "" {
		return "", fmt.Errorf("the protocol is %.100q: it is grpc or http", c.Protocol)
	}
	switch v := c.getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); v {
	case "", "grpc":
		return GRPC, nil
	case "http/protobuf":
		return HTTP, nil
	default:
		return "", fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %.100q: there are grpc and http/protobuf", v)
	}
}

// url is the Endpoint with a scheme, and for HTTP with a path.
func (c *Config) url() (string, error) {
	text := c.Endpoint
	if !strings.Contains(text, "://") {
		scheme := "https://"
		if c.Insecure {
			scheme = "http://"
		}
		text = scheme + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return "", fmt.Errorf("%.200q is no URL such as http://localhost:4317, and no HOST:PORT", c.Endpoint)
	}
	p, err := c.protocol()
	if err != nil {
		return "", err
	}
	if c.Protocol == "" && c.Getenv == nil {
		p = "" // only who starts knows
	}
	if _, port, err := net.SplitHostPort(u.Host); p == GRPC && (err != nil || port == "") {
		return "", fmt.Errorf("%.200q has no port: a collector of gRPC mostly has 4317", c.Endpoint)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	} else if p == GRPC {
		return "", fmt.Errorf("%.200q has a path, and gRPC has none", c.Endpoint)
	}
	return u.String(), nil
}

// A Tracer makes spans and sends them. It is made by Start; a nil one traces
// nothing. It is safe for use by many goroutines at once, and ends with
// Shutdown.
type Tracer struct {
	provider  *trace.TracerProvider
	tracer    api.Tracer
	propagate propagation.TextMapPropagator
}

// Start makes a Tracer, or returns nil where nothing is to be traced. It does
// not wait for the collector.
func Start(ctx context.Context, c Config) (*Tracer, error) {
	if on, err := c.on(); !on || err != nil {
		return nil, err
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	exporter, err := c.exporter(ctx)
	if err != nil {
		return nil, err
	}
	about, err := c.resource(ctx)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) && !errors.Is(err, resource.ErrSchemaURLConflict) {
		_ = exporter.Shutdown(ctx)
		return nil, err
	}
	options := []trace.TracerProviderOption{
		trace.WithBatcher(&reporting{SpanExporter: exporter, log: c.Log}),
		trace.WithResource(about),
	}
	// Else the provider looks at OTEL_TRACES_SAMPLER itself.
	if c.Ratio != nil || c.getenv("OTEL_TRACES_SAMPLER") == "" {
		ratio := DefaultRatio
		if c.Ratio != nil {
			ratio = *c.Ratio
		}
		options = append(options, trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(ratio))))
	}
	t := &Tracer{provider: trace.NewTracerProvider(options...), propagate: propagation.TraceContext{}}
	t.tracer = t.provider.Tracer("github.com/firnid/firn/server", api.WithInstrumentationVersion(c.Version))
	return t, nil
}

// exporter is what sends to the collector.
func (c *Config) exporter(ctx context.Context) (trace.SpanExporter, error) {
	p, err := c.protocol()
	if err != nil {
		return nil, err
	}
	at := ""
	if c.Endpoint != "" {
		if at, err = c.url(); err != nil {
			return nil, err
		}
	}
	if p == HTTP {
		var options []otlptracehttp.Option
		if at != "" {
			options = append(options, otlptracehttp.WithEndpointURL(at))
		}
		return otlptracehttp.New(ctx, options...)
	}
	var options []otlptracegrpc.Option
	if at != "" {
		options = append(options, otlptracegrpc.WithEndpointURL(at))
	}
	return otlptracegrpc.New(ctx, options...)
}

// resource is what all spans are of.
func (c *Config) resource(ctx context.Context) (*resource.Resource, error) {
	attrs := []attribute.KeyValue{semconv.ServiceName("firn")}
	if c.Version != "" {
		attrs = append(attrs, semconv.ServiceVersion(c.Version))
	}
	if c.Instance != "" {
		attrs = append(attrs, semconv.ServiceInstanceID(c.Instance))
	}
	// What comes later counts.
	options := []resource.Option{resource.WithTelemetrySDK(), resource.WithHost(), resource.WithAttributes(attrs...), resource.WithFromEnv()}
	if c.Service != "" {
		options = append(options, resource.WithAttributes(semconv.ServiceName(c.Service)))
	}
	return resource.New(ctx, options...)
}

// Shutdown sends what was not sent yet, until ctx is done, and ends the Tracer.
// What could not be sent is lost, which is the error.
func (t *Tracer) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// A reporting is an exporter that tells the log what has failed, in place of
// the one handler of errors that a process has.
type reporting struct {
	trace.SpanExporter
	log    *slog.Logger
	failed atomic.Bool // since it succeeded last
}

func (r *reporting) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err == nil && r.failed.Swap(false):
		r.log.InfoContext(ctx, "tracing: the collector takes spans again")
	case err != nil && !r.failed.Swap(true):
		r.log.WarnContext(ctx, "tracing: the collector does not take spans; these are lost, and those that follow until it does", "error", err)
	}
	return nil
}
