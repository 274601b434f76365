package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/firnid/firn/server/internal/operate/tracing"
)

// traceFlags adds the flags of traces.
func (s *serveCmd) traceFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.traces.Endpoint, "tracing-endpoint", "",
		"`URL` of an OpenTelemetry collector for traces (default $OTEL_EXPORTER_OTLP_ENDPOINT, or none)")
	wordVar(cmd, &s.traces.Protocol, "tracing-protocol", "PROTOCOL",
		"protocol of the collector: grpc or http (default $OTEL_EXPORTER_OTLP_PROTOCOL, or grpc)", tracing.GRPC, tracing.HTTP)
	f.BoolVar(&s.traces.Insecure, "tracing-insecure", false, "send traces without TLS if the URL has no scheme")
	show := func(*float64) string { return fmt.Sprint(tracing.DefaultRatio) }
	f.Var(&value[*float64]{&s.traces.Ratio, parseRatio, show, "RATIO"}, "tracing-sample-ratio",
		"share of requests to trace, 0 to 1, if the client does not decide")
	f.StringVar(&s.traces.Service, "tracing-service-name", "", "`NAME` of the service in traces (default $OTEL_SERVICE_NAME, or firn)")
}

func parseRatio(s string) (*float64, error) {
	r, err := strconv.ParseFloat(s, 64)
	if err != nil || !(r >= 0 && r <= 1) {
		return nil, errors.New("it must be a number from 0 to 1, such as 0.01")
	}
	return &r, nil
}

// checkTraces validates the flags of traces.
func (s *serveCmd) checkTraces() (all faults) {
	if err := s.traces.Check(); err != nil {
		all.add("tracing-endpoint", "", "such as --tracing-endpoint http://localhost:4317", "%w", err)
	}
	return all
}

// traceLimit bounds the time for sending the remaining spans after everything
// else has ended.
const traceLimit = 3 * time.Second

// startTraces starts tracing if it is enabled, and otherwise returns a nil
// provider. end sends the remaining spans.
func (s *serveCmd) startTraces(ctx context.Context, a *app, log *slog.Logger) (_ trace.TracerProvider, end func(), err error) {
	c := s.traces
	c.Version, c.Getenv, c.Logger = version, a.getenv, log
	if host, err := os.Hostname(); err == nil {
		c.Instance = host + ":" + strconv.Itoa(os.Getpid())
	}
	provider, err := tracing.Start(ctx, c)
	switch {
	case err != nil:
		return nil, nil, misuse("see docs/tracing.md", "traces: %w", err)
	case provider == nil:
		return nil, func() {}, nil
	}
	return provider, func() {
		ctx, cancel := context.WithTimeout(context.Background(), traceLimit)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("tracing: the last spans are lost", "error", err)
		}
	}, nil
}
