package tracing

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	api "go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/protocol/requestid"
)

// Attribute keys of Firn.
const (
	keyRequest   = attribute.Key("firn.request_id")
	keyCommands  = attribute.Key("firn.commands")
	keyIDs       = attribute.Key("firn.ids")
	keyErrors    = attribute.Key("firn.errors")
	keyStoreKey  = attribute.Key("firn.store.key")
	keyCASResult = attribute.Key("firn.cas.result")
)

// HTTP returns a function for httpapi.Config.Trace. secure reports whether the
// connections use TLS.
func (t *Tracer) HTTP(secure bool) func(r *http.Request, pattern string) (context.Context, func(status int)) {
	if t == nil {
		return nil
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return func(r *http.Request, pattern string) (context.Context, func(int)) {
		ctx := t.propagate.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, r.Method+" "+pattern, api.WithSpanKind(api.SpanKindServer))
		if span.IsRecording() {
			span.SetAttributes(
				semconv.HTTPRequestMethodKey.String(r.Method), semconv.HTTPRoute(pattern),
				semconv.URLPath(textfmt.Short(r.URL.Path)), semconv.URLScheme(scheme),
				keyRequest.String(requestid.Of(ctx)),
			)
		}
		return ctx, func(status int) {
			if span.IsRecording() {
				span.SetAttributes(semconv.HTTPResponseStatusCode(status))
				if status >= http.StatusInternalServerError {
					span.SetStatus(codes.Error, "")
				}
			}
			span.End()
		}
	}
}

// RESP returns a function for respapi.Config.Trace.
func (t *Tracer) RESP() func(context.Context) (context.Context, func(first string, commands, ids, failed int)) {
	if t == nil {
		return nil
	}
	return func(ctx context.Context) (context.Context, func(string, int, int, int)) {
		ctx, span := t.tracer.Start(ctx, "RESP", api.WithSpanKind(api.SpanKindServer))
		return ctx, func(first string, commands, ids, failed int) {
			switch {
			case !span.IsRecording():
			case commands == 0: // only part of a command has arrived
				span.SetName("RESP incomplete")
			default:
				span.SetName("RESP " + first)
				span.SetAttributes(keyCommands.Int(commands), keyIDs.Int(ids), keyErrors.Int(failed))
				if failed == commands {
					span.SetStatus(codes.Error, "")
				}
			}
			span.End()
		}
	}
}

// GRPCServer returns options of a server: a span for each call except health
// checks and reflection.
func (t *Tracer) GRPCServer() []grpc.ServerOption {
	if t == nil {
		return nil
	}
	// These run after the interceptor that sets the request ID.
	unary := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		addRequestID(ctx)
		return handle(ctx, req)
	}
	stream := func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		addRequestID(s.Context())
		return handle(srv, s)
	}
	return []grpc.ServerOption{
		grpc.StatsHandler(otelgrpc.NewServerHandler(append(t.grpcOptions(), otelgrpc.WithFilter(hasSpan))...)),
		grpc.ChainUnaryInterceptor(unary),
		grpc.ChainStreamInterceptor(stream),
	}
}

// Inject returns a function that adds the trace of a context to the header of
// an HTTP request.
func (t *Tracer) Inject() func(context.Context, http.Header) {
	if t == nil {
		return nil
	}
	return func(ctx context.Context, h http.Header) { t.propagate.Inject(ctx, propagation.HeaderCarrier(h)) }
}

// hasSpan reports whether a gRPC call has a span. A client may send any text as
// the method.
func hasSpan(call *stats.RPCTagInfo) bool {
	name := call.FullMethodName
	return !strings.HasPrefix(name, "/grpc.") && textfmt.Short(name) == name
}

func (t *Tracer) grpcOptions() []otelgrpc.Option {
	return []otelgrpc.Option{otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithPropagators(t.propagate)}
}

// addRequestID adds the request ID to the span of a context.
func addRequestID(ctx context.Context) {
	if span := api.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(keyRequest.String(requestid.Of(ctx)))
	}
}

// Store returns a Store with a span for each call of s. Calls of a Keeper,
// which renews windows on its own, begin their own traces.
func (t *Tracer) Store(s grant.Store) grant.Store {
	if t == nil {
		return s
	}
	observe := func(ctx context.Context, what grant.Request, key string) (context.Context, func(bool, error)) {
		ctx, span := t.tracer.Start(ctx, "store "+string(what), api.WithSpanKind(api.SpanKindClient))
		if span.IsRecording() && key != "" {
			span.SetAttributes(keyStoreKey.String(key))
		}
		return ctx, func(applied bool, err error) {
			if span.IsRecording() && what == grant.RequestCAS {
				span.SetAttributes(keyCASResult.String(casResult(applied, err)))
			}
			if err != nil {
				span.SetStatus(codes.Error, err.Error())
			}
			span.End()
		}
	}
	return grant.Observe(s, observe)
}

// casResult returns the result of a compare-and-swap as a word.
func casResult(applied bool, err error) string {
	switch {
	case errors.Is(err, grant.ErrNotSent):
		return "not sent"
	case err != nil:
		return "unknown"
	case applied:
		return "applied"
	}
	return "refused"
}

// NewHandler returns a Handler that adds trace_id and span_id to log lines
// whose context has a sampled span.
func NewHandler(h slog.Handler) slog.Handler {
	return requestid.WithAttrs(h, func(ctx context.Context) (attrs []slog.Attr) {
		if sc := api.SpanContextFromContext(ctx); sc.IsSampled() {
			attrs = append(attrs, slog.String("trace_id", sc.TraceID().String()),
				slog.String("span_id", sc.SpanID().String()))
		}
		return attrs
	})
}
