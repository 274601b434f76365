// Package tracing sends traces of what a server does to an OpenTelemetry
// collector, as OTLP. docs/tracing.md says which spans there are.
//
// A nil *Tracer is one of a server that traces nothing: its methods may be
// called, and return what costs nothing, which is nil where that means that
// nobody is told.
package tracing
