package httpapi

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/inspect"
	"github.com/firnid/firn/server/requestid"
	"github.com/firnid/firn/server/service"
)

// Config says what a Handler serves, and within which limits. Only the Backend
// is needed; the zero value of any other field means what the field says.
type Config struct {
	// Backend finds the sequencers.
	Backend service.Backend

	// Limit is how long a request may wait for its IDs; 0 means DefaultLimit.
	Limit time.Duration

	// Limits bound requests and connections.
	Limits service.Limits

	// AnyHost lets requests name any Host. Without it only localhost, 127.0.0.0/8
	// and [::1] are answered: a server without tokens would else answer every web
	// page whose own host name resolves to this machine (DNS rebinding).
	AnyHost bool

	// Metrics answers /metrics; nil leaves that path out.
	Metrics http.Handler

	// Observe is told of every request but those about health and metrics: the
	// status of its answer, and how long it took. nil means that nobody is.
	Observe func(status int, d time.Duration)

	// Trace is told of every request that Observe is told of, when it begins, with
	// its path as a pattern. It returns the context of what is done for it, and a
	// function that is told the status of the answer. nil means that nobody is.
	Trace func(r *http.Request, pattern string) (ctx context.Context, end func(status int))

	// Console answers what it matches and no other path does; nil leaves it out.
	Console Console

	// RESP returns what serves the connection of a request from now on, for a
	// client that switches it to RESP, or nil where the connection may not speak
	// it. nil means that none may.
	RESP func(*http.Request) (serve func(net.Conn))

	// Auth knows who may do what; nil lets everybody do everything.
	Auth auth.Authorizer

	// TLS is the state of a request's connection, or nil where it has no TLS; nil
	// means that of http.Server.
	TLS func(*http.Request) *tls.ConnectionState

	// Log is told of failures that are nobody's but the server's, and of every
	// request at the level debug; nil means that nobody is. The context of a line
	// has the ID of the request, see package requestid.
	Log *slog.Logger

	// NewRequestID names a request whose client has not; nil means requestid.New.
	NewRequestID func() string
}

// A Console is pages for people. It must be safe for use by many goroutines at
// once, and finds out itself who may see what.
type Console interface {
	http.Handler

	// Matches reports whether the console has an answer.
	Matches(r *http.Request) bool
}

// A Handler answers the HTTP API. It is safe for use by many goroutines at
// once, and must be made by NewHandler.
type Handler struct {
	backend  service.Backend
	limit    time.Duration
	limits   service.Limits
	anyHost  bool
	auth     auth.Authorizer
	tls      func(*http.Request) *tls.ConnectionState
	console  Console
	resp     func(*http.Request) func(net.Conn)
	log      *slog.Logger
	newID    func() string
	mux      *http.ServeMux
	ready    *service.Readiness
	draining atomic.Bool
	unready  atomic.Pointer[service.Kind] // why /readyz last said 503; nil if it did not
}

// A route is a path with its methods. Its function writes an answer or returns
// a problem, but not both.
type route struct {
	path    string
	methods []string
	need    auth.Action // to read; what changes something needs Change
	serve   func(*Handler, http.ResponseWriter, *http.Request) *problem
}

// routes are all paths, in the patterns of http.ServeMux.
var routes = []route{
	{"/{$}", read, auth.Anything, (*Handler).index},
	{"/healthz", read, auth.Anything, (*Handler).healthz},
	{"/readyz", read, auth.Anything, (*Handler).readyz},
	{"/openapi.yaml", read, auth.Anything, (*Handler).openapi},
	{"/v1/inspect/{id}", read, auth.Inspect, (*Handler).inspect},
	{"/v1/members", read, auth.See, (*Handler).members},
	{"/v1/resp", []string{http.MethodGet}, auth.Anything, (*Handler).switchToRESP},
	{"/v1/sequencers", read, auth.See, (*Handler).sequencers},
	{"/v1/sequencers/{name}", []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete}, auth.See, (*Handler).sequencer},
	{"/v1/sequencers/{name}/attach", []string{http.MethodPost}, auth.Change, (*Handler).attach},
	{"/v1/sequencers/{name}/detach", []string{http.MethodPost}, auth.Change, (*Handler).detach},
	{"/v1/sequencers/{name}/next", []string{http.MethodGet, http.MethodPost}, auth.Take, (*Handler).next},
}

// read are the methods of a path that changes nothing. A path where GET changes
// something must not answer HEAD: it would take IDs and throw them away.
var read = []string{http.MethodGet, http.MethodHead}

// NewHandler makes a Handler. It panics if c has no Backend.
func NewHandler(c Config) *Handler {
	if c.Backend == nil {
		panic("httpapi: NewHandler needs a Config with a Backend")
	}
	h := &Handler{backend: c.Backend, limit: c.Limit, limits: c.Limits.WithDefaults(), anyHost: c.AnyHost, auth: c.Auth, tls: c.TLS, console: c.Console, resp: c.RESP, log: c.Log, newID: c.NewRequestID, mux: http.NewServeMux()}
	if h.limit == 0 {
		h.limit = service.DefaultLimit
	}
	h.ready = service.NewReadiness(h.backend, h.limit)
	if h.resp == nil {
		h.resp = func(*http.Request) func(net.Conn) { return nil }
	}
	if h.tls == nil {
		h.tls = func(r *http.Request) *tls.ConnectionState { return r.TLS }
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	all := routes
	if c.Metrics != nil {
		all = append(slices.Clip(all), route{"/metrics", read, auth.SeeAll, func(_ *Handler, w http.ResponseWriter, r *http.Request) *problem {
			c.Metrics.ServeHTTP(w, r)
			return nil
		}})
	}
	for _, r := range all {
		observe, trace := c.Observe, c.Trace
		if r.need == auth.Anything || r.path == "/metrics" {
			observe, trace = nil, nil
		}
		h.mux.HandleFunc(r.path, func(w http.ResponseWriter, req *http.Request) {
			if r.need != auth.Take || trace != nil { // next does so itself, if need be
				req = named(w, req)
			}
			if r.path == "/{$}" && h.console != nil && h.console.Matches(req) {
				h.console.ServeHTTP(w, req)
				return
			}
			if !slices.Contains(r.methods, req.Method) {
				p := problemf(service.MethodNotAllowed, "%s is not a method of this path: there are %s", inspect.Quote(req.Method), list(r.methods))
				p.allow = strings.Join(r.methods, ", ")
				h.fail(w, req, p)
				return
			}
			need := r.need
			if need == auth.See && req.Method != http.MethodGet && req.Method != http.MethodHead {
				need = auth.Change
			}
			var begin time.Time
			if observe != nil {
				begin = time.Now()
			}
			if trace != nil {
				ctx, end := trace(req, r.path)
				watched := &statusWriter{ResponseWriter: w}
				defer func() { end(watched.sent()) }()
				w, req = watched, req.WithContext(ctx)
			}
			defer func() {
				if what := recover(); what != nil {
					h.panicked(w, req, what)
					if observe != nil {
						observe(http.StatusInternalServerError, time.Since(begin))
					}
					panic(http.ErrAbortHandler) // net/http closes the connection: a part of an answer may be sent
				}
			}()
			p := h.check(req, need, req.PathValue("name"))
			if p == nil {
				p = r.serve(h, w, req)
			}
			status := http.StatusOK
			if p != nil {
				h.fail(w, req, p)
				status = p.Kind.Status()
			}
			if observe != nil {
				observe(status, time.Since(begin))
			}
		})
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		req = named(w, req)
		if h.console != nil && h.console.Matches(req) {
			h.console.ServeHTTP(w, req)
			return
		}
		h.fail(w, req, problemf(service.NotFound, "there is nothing at %s; GET / says what there is", inspect.Quote(req.URL.Path)))
	})
	return h
}

// Headers whose values never change are set without an allocation.
var (
	headerNoStore = []string{"no-store"}
	headerNoSniff = []string{"nosniff"}
	headerClose   = []string{"close"}
)

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	// No answer may be kept: a GET of IDs gives new ones every time, and what is
	// wrong now may be right a moment later.
	header["Cache-Control"] = headerNoStore
	header["X-Content-Type-Options"] = headerNoSniff
	if r.ContentLength != 0 {
		h.closeAfterBody(w)
	}
	if h.draining.Load() {
		// Its client makes another connection while this server still answers, and
		// not when this one is closed under a request.
		header["Connection"] = headerClose
	}
	header[requestid.Header] = requestid.Values(r.Header[requestid.Header], h.newID)
	if h.log.Enabled(r.Context(), slog.LevelDebug) {
		r = named(w, r)
		begin, watched := time.Now(), &statusWriter{ResponseWriter: w}
		defer func(method, path string) {
			h.log.LogAttrs(r.Context(), slog.LevelDebug, "request", slog.String("protocol", "http"), slog.String("method", method),
				slog.String("path", path), slog.Int("status", watched.sent()), slog.Duration("took", time.Since(begin)))
		}(r.Method, r.URL.Path)
		w = watched
	}

	if !h.anyHost && !isLoopbackHost(r.Host) {
		h.fail(w, r, problemf(service.ForeignHost, "Host is %s: this server answers only localhost, 127.0.0.0/8 and [::1], because it asks for no token", inspect.Quote(r.Host)))
		return
	}
	// ServeMux would redirect to the cleaned path, where there is as little.
	if p := r.URL.EscapedPath(); !strings.HasPrefix(p, "/") || path.Clean(p) != p {
		h.fail(w, r, problemf(service.NotFound, "there is nothing at %s: a path begins with / and has no empty, . or .. segments; GET / says what there is", inspect.Quote(r.URL.Path)))
		return
	}
	h.mux.ServeHTTP(w, r)
}

// named returns a request whose context has its ID, which ServeHTTP has written
// into the answer. Most requests for IDs do without: they wait for nothing, and
// log nothing.
func named(w http.ResponseWriter, r *http.Request) *http.Request {
	if requestid.Of(r.Context()) != "" {
		return r
	}
	return r.WithContext(requestid.WithID(r.Context(), w.Header()[requestid.Header][0]))
}

// A statusWriter knows the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK { // those below come before the answer
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// panicked logs a request that has panicked, which ends nothing but itself. For
// logs and traces its status is 500.
func (h *Handler) panicked(w http.ResponseWriter, r *http.Request, what any) {
	for watched, ok := w.(*statusWriter); ok; watched, ok = watched.ResponseWriter.(*statusWriter) {
		watched.status = http.StatusInternalServerError
	}
	if what != http.ErrAbortHandler {
		r = named(w, r)
		h.log.LogAttrs(r.Context(), slog.LevelError, "request panicked", slog.String("method", r.Method), slog.String("path", r.URL.Path),
			slog.Any("panic", what), slog.String("stack", string(debug.Stack())))
	}
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// sent is the status that was sent: 200 where nothing was said.
func (w *statusWriter) sent() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// fail answers with a problem.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, p *problem) {
	r = named(w, r)
	if p.Cause != nil {
		h.log.LogAttrs(r.Context(), p.Level(), "request failed",
			slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("err", p.Cause))
	}
	p.write(w, r)
}

// Drain makes /readyz say that the server is about to stop, so that no more
// requests are sent to it. Those that come are still answered, each with the
// end of its connection. A load balancer sees it only while the server still
// listens: http.Server's Shutdown comes when those that ask had the time to.
func (h *Handler) Drain() { h.draining.Store(true) }

// healthz says that the server runs.
func (h *Handler) healthz(w http.ResponseWriter, r *http.Request) *problem {
	return plain(w, r, "ok\n")
}

// readyz says whether requests should be sent to the server.
func (h *Handler) readyz(w http.ResponseWriter, r *http.Request) *problem {
	if h.draining.Load() {
		return problemf(service.Draining, "the server finishes what it has and stops: send requests to another one")
	}
	err := h.ready.Ready(r.Context())
	if r.Context().Err() != nil {
		return problemf(service.Cancelled, "the request was given up") // which says nothing of the server
	}
	if p := h.noteReady(r.Context(), err); p != nil {
		return p
	}
	return plain(w, r, "ready\n")
}

// noteReady is the problem of a server that is not ready. The log is told when
// it becomes so, for another reason too, and when it is over: not at every
// probe.
func (h *Handler) noteReady(ctx context.Context, err error) *problem {
	if err == nil {
		if h.unready.Load() != nil && h.unready.Swap(nil) != nil {
			h.log.LogAttrs(ctx, slog.LevelInfo, "ready again")
		}
		return nil
	}
	p := problemOf(err, h.limit, false)
	if was := h.unready.Swap(&p.Kind); was == nil || *was != p.Kind {
		h.log.LogAttrs(ctx, slog.LevelWarn, "not ready: /readyz says 503", slog.String("reason", p.Kind.String()), slog.Any("error", err))
	}
	p.Cause = nil // it was logged
	return p
}

// index says what this is, to whoever opens the address in a browser.
func (h *Handler) index(w http.ResponseWriter, r *http.Request) *problem {
	host := r.Host
	return plain(w, r, `This is Firn. It hands out unique, time-ordered IDs.

Make one, of a sequencer with a name of your choice:

  curl -s http://`+host+`/v1/sequencers/orders/next

Make five, as lines of text:

  curl -s -H 'Accept: text/plain' 'http://`+host+`/v1/sequencers/orders/next?count=5'

Read one:

  curl -s http://`+host+`/v1/inspect/$(curl -s -H 'Accept: text/plain' http://`+host+`/v1/sequencers/orders/next)

/healthz says whether the server runs, /readyz whether it takes requests.
`)
}

// plain answers with a text, on a path that has no parameters.
func plain(w http.ResponseWriter, r *http.Request, text string) *problem {
	if _, faults := readParams(r.URL.RawQuery, nil); faults != nil {
		return faults.problem()
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write([]byte(text))
	return nil
}
