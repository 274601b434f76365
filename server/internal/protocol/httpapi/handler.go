package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/service"
)

// Config is the configuration of a Handler. Only Front.Backend is required; the
// zero value of every other field has the meaning given at the field.
type Config struct {
	Front service.Front // what requests need

	// AnyHost allows any Host in requests. Otherwise only those of allowsHost
	// are answered: without tokens and TLS, any web page could reach the server
	// through a host name of its own that resolves to this machine (DNS
	// rebinding).
	AnyHost bool

	// Hosts are names that are allowed in addition.
	Hosts []string

	// Metrics answers /metrics; nil disables that path.
	Metrics http.Handler

	// Trace is called at the beginning of every request, with the path as a
	// pattern; for health and metrics, neither it nor Observe is. It returns
	// the request's context, and a function that is called with the status of
	// the answer. nil traces nothing.
	Trace func(r *http.Request, pattern string) (ctx context.Context, end func(status int))

	// Console answers requests that it matches and no other path does; nil
	// disables it.
	Console Console

	// Owner returns the owner of this server's node ID of a sequencer, for the
	// answer to a forwarded request; nil means that it has no owner to show.
	Owner func(name string) string
}

// A Console serves pages for people. It must be safe for concurrent use, and
// decides itself what each user may see.
type Console interface {
	http.Handler

	// Matches reports whether the console answers the request.
	Matches(r *http.Request) bool
}

// A Handler answers the HTTP API. It is safe for concurrent use, and must be
// made by NewHandler.
type Handler struct {
	config   Config
	front    *service.Front // of config
	mux      *http.ServeMux
	exposed  bool // see Expose
	draining atomic.Bool
	unready  atomic.Pointer[service.Kind] // why /readyz last answered 503; nil if it did not
}

// NewHandler makes a Handler. It panics if c.Front has no Backend.
func NewHandler(c Config) *Handler {
	c.Front = c.Front.WithDefaults()
	h := &Handler{config: c, mux: http.NewServeMux()}
	h.front = &h.config.Front
	h.front.SendToken = "in the header Authorization: Bearer firn_…"
	h.front.NameSequencer = "name its sequencer with sequencer=NAME"
	for _, r := range routes {
		h.handle(r, r.need != auth.Nothing)
	}
	if c.Metrics != nil {
		serve := func(_ *Handler, w http.ResponseWriter, r *http.Request, _ *auth.Credentials) *service.Problem {
			c.Metrics.ServeHTTP(w, r)
			return nil
		}
		h.handle(route{path: "/metrics", methods: readMethods, need: auth.SeeAll, serve: serve, query: true}, false)
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		req = withRequestID(w, req)
		if c.Console != nil && c.Console.Matches(req) {
			c.Console.ServeHTTP(w, req)
			return
		}
		h.fail(w, req, service.Problemf(service.NotFound, "no such path: %s; see GET /", textfmt.Quote(req.URL.Path)))
	})
	return h
}

// Headers with constant values are set without an allocation.
var (
	headerNoStore = []string{"no-store"}
	headerNoSniff = []string{"nosniff"}
	headerClose   = []string{"close"}
)

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	// http.Server knows it only of connections that it can see to be of TLS.
	r.TLS = listen.StateOf(listen.ConnIn(r.Context()))
	// Responses must not be cached: every GET of IDs returns new ones, and an
	// error may be gone a moment later.
	header["Cache-Control"] = headerNoStore
	header["X-Content-Type-Options"] = headerNoSniff
	if r.ContentLength != 0 {
		h.closeAfterBody(w)
	}
	if h.draining.Load() {
		// Make the client reconnect elsewhere while this server still answers,
		// not when it closes a connection with a request on it.
		header["Connection"] = headerClose
	}
	header[requestid.Header] = requestid.Values(r.Header[requestid.Header])
	if h.front.Logger.Enabled(r.Context(), slog.LevelDebug) {
		r = withRequestID(w, r)
		begin, watched := time.Now(), &statusWriter{ResponseWriter: w}
		defer func(method, path string) {
			h.front.Logger.LogAttrs(r.Context(), slog.LevelDebug, "request", slog.String("protocol", "http"),
				slog.String("method", textfmt.Short(method)),
				slog.String("path", textfmt.Short(path)), slog.Int("status", watched.sent()),
				slog.Duration("took", time.Since(begin)))
		}(r.Method, r.URL.Path)
		w = watched
	}

	if !h.allowsHost(r.Host) {
		h.fail(w, r, service.Problemf(service.ForeignHost, "Host is %s: without tokens or TLS, this server answers only %s; "+
			"allow others with --allow-host",
			textfmt.Quote(r.Host), h.allowedHosts()))
		return
	}
	// ServeMux would redirect to the cleaned path, which does not exist either.
	if p := r.URL.EscapedPath(); !strings.HasPrefix(p, "/") || path.Clean(p) != p {
		h.fail(w, r, service.Problemf(service.NotFound, "no such path: %s: a path begins with / and has no empty, . or .. "+
			"segments; see GET /",
			textfmt.Quote(r.URL.Path)))
		return
	}
	h.mux.ServeHTTP(w, r)
}

// withRequestID returns a request whose context has its request ID, which
// ServeHTTP has written into the answer. Most requests for IDs need none: they
// wait for nothing, and log nothing.
func withRequestID(w http.ResponseWriter, r *http.Request) *http.Request {
	if ctx := identify(r.Context(), w); ctx != r.Context() {
		return r.WithContext(ctx)
	}
	return r
}

// identify returns the context with the request ID that the answer has.
func identify(ctx context.Context, w http.ResponseWriter) context.Context {
	if requestid.Of(ctx) != "" {
		return ctx
	}
	return requestid.WithID(ctx, w.Header()[requestid.Header][0])
}

// logPanic logs a request that has panicked; other requests are not affected.
// Logs and traces show status 500.
func (h *Handler) logPanic(w http.ResponseWriter, r *http.Request, what any) {
	for watched, ok := w.(*statusWriter); ok; watched, ok = watched.ResponseWriter.(*statusWriter) {
		watched.status = http.StatusInternalServerError
	}
	if what != http.ErrAbortHandler {
		r = withRequestID(w, r)
		h.front.Logger.LogAttrs(r.Context(), slog.LevelError, "request panicked",
			slog.String("method", textfmt.Short(r.Method)), slog.String("path", textfmt.Short(r.URL.Path)),
			slog.Any("panic", what), slog.String("stack", string(debug.Stack())))
	}
}

// fail answers with a problem.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, p *service.Problem) {
	r = withRequestID(w, r)
	if p.Cause != nil {
		h.front.Logger.LogAttrs(r.Context(), p.Level(), "request failed",
			slog.String("method", textfmt.Short(r.Method)), slog.String("path", textfmt.Short(r.URL.Path)),
			slog.Any("error", p.Cause))
	}
	writeProblem(w, r, p.Kind.Status(), p)
}

// index explains the server to a person who opens its address in a browser.
func (h *Handler) index(w http.ResponseWriter, r *http.Request, _ *auth.Credentials) *service.Problem {
	url := "http://" + r.Host
	if r.TLS != nil {
		url = "https://" + r.Host
	}
	return writeText(w, `This is Firn. It hands out unique, time-ordered IDs.

Make one, of a sequencer with a name of your choice:

  curl -s -X POST `+url+`/v1/sequencers/orders/next

Make five, as lines of text:

  curl -s -H 'Accept: text/plain' '`+url+`/v1/sequencers/orders/next?count=5'

Read one:

  curl -s `+url+`/v1/inspect/$(curl -s -H 'Accept: text/plain' `+url+`/v1/sequencers/orders/next)

/healthz shows whether the server runs, /readyz whether it accepts requests.
`)
}

// credentials returns the credentials of a request.
func credentials(r *http.Request) *auth.Credentials {
	c := auth.FromHeader(r.Header["Authorization"], r.TLS)
	c.Address = r.RemoteAddr
	return c
}
