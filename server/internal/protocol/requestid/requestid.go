// Package requestid identifies requests: all log lines of a request have its
// ID, on every server that it passes through, and its client gets it.
package requestid

import (
	"context"
	"log/slog"
	"math/rand/v2"
)

// The names under which the ID is sent and logged.
const (
	Header   = "X-Request-Id"    // HTTP header
	Metadata = "firn-request-id" // gRPC metadata
	LogKey   = "request_id"      // in log lines and HTTP problems
)

// maxID is the maximum length of an ID that a client chooses.
const maxID = 128

// New makes an ID: 16 lower-case letters and digits, 80 random bits. It is for
// finding log lines, and is not a secret.
func New() string {
	const digits = "0123456789abcdefghjkmnpqrstvwxyz"
	var b [16]byte
	hi, lo := rand.Uint64(), rand.Uint64()
	for i := range 8 {
		b[i], b[8+i] = digits[hi&31], digits[lo&31]
		hi, lo = hi>>5, lo>>5
	}
	return string(b[:])
}

// Valid reports whether a client's text is a valid ID: 1 to maxID visible ASCII
// characters.
func Valid(s string) bool {
	if s == "" || len(s) > maxID {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Values returns the values of the header that returns the ID of a request.
// They are those that the client sent if they are exactly one valid ID;
// otherwise the request gets a new one.
func Values(sent []string) []string {
	if len(sent) == 1 && Valid(sent[0]) {
		return sent
	}
	return []string{New()}
}

type idKey struct{}

// WithID returns the context of a request with this ID.
func WithID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, idKey{}, id)
}

// Of returns the request ID of a context, or "".
func Of(ctx context.Context) string {
	id, _ := ctx.Value(idKey{}).(string)
	return id
}

// NewHandler returns a Handler that adds the request ID to log lines whose
// context has one, as request_id.
func NewHandler(h slog.Handler) slog.Handler {
	return WithAttrs(h, func(ctx context.Context) (attrs []slog.Attr) {
		if id := Of(ctx); id != "" {
			attrs = append(attrs, slog.String(LogKey, id))
		}
		return attrs
	})
}

// WithAttrs returns a Handler that adds attributes of their context to log
// lines.
func WithAttrs(h slog.Handler, attrsOf func(context.Context) []slog.Attr) slog.Handler {
	return handler{h, attrsOf}
}

type handler struct {
	slog.Handler
	attrsOf func(context.Context) []slog.Attr
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if attrs := h.attrsOf(ctx); attrs != nil {
		r = r.Clone()
		r.AddAttrs(attrs...)
	}
	return h.Handler.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.attrsOf}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.attrsOf}
}
