// Package tracing sends traces of a server to an OpenTelemetry collector over
// OTLP. docs/tracing.md lists the spans.
//
// A nil *Tracer traces nothing: its methods may be called, and return values
// that cost nothing, such as nil functions.
package tracing
