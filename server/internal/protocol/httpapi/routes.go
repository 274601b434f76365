package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/service"
)

// A route is a path with its methods. Its function either writes an answer or
// returns a problem.
type route struct {
	path    string
	methods []string
	need    auth.Action // for reading; changes need Change
	serve   func(*Handler, http.ResponseWriter, *http.Request, *auth.Credentials) *service.Problem
	query   bool // the function reads the query; otherwise there are no parameters
}

// routes lists all paths, as patterns of http.ServeMux.
var routes = []route{
	{path: "/{$}", methods: readMethods, need: auth.Nothing, serve: (*Handler).index},
	{path: "/healthz", methods: readMethods, need: auth.Nothing, serve: (*Handler).healthz},
	{path: "/readyz", methods: readMethods, need: auth.Nothing, serve: (*Handler).readyz},
	{path: "/openapi.yaml", methods: readMethods, need: auth.Nothing, serve: (*Handler).openapi},
	{path: "/v1/inspect", methods: []string{http.MethodPost}, need: auth.Inspect,
		serve: (*Handler).inspectColumn, query: true},
	{path: "/v1/inspect/{id}", methods: readMethods, need: auth.Inspect, serve: (*Handler).inspect, query: true},
	{path: "/v1/members", methods: readMethods, need: auth.See, serve: (*Handler).members},
	{path: "/v1/sequencers", methods: readMethods, need: auth.See, serve: admin((*Handler).listSequencers)},
	{path: "/v1/sequencers/{name}",
		methods: []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete}, need: auth.See,
		serve: admin((*Handler).serveSequencer)},
	{path: "/v1/sequencers/{name}/attach", methods: []string{http.MethodPost}, need: auth.Change,
		serve: admin(change(service.AttachWithin))},
	{path: "/v1/sequencers/{name}/detach", methods: []string{http.MethodPost}, need: auth.Change,
		serve: admin(change(service.DetachWithin))},
	{path: "/v1/sequencers/{name}/next", methods: []string{http.MethodGet, http.MethodPost}, need: auth.Take,
		serve: (*Handler).next, query: true},
}

// readMethods lists the methods of a path that changes nothing. A path that
// takes IDs by GET must not answer HEAD: it would take IDs and discard them.
var readMethods = []string{http.MethodGet, http.MethodHead}

// handle registers a route, whose requests may be observed and traced.
func (h *Handler) handle(r route, isObserved bool) {
	observe, trace := h.front.Observe, h.config.Trace
	if !isObserved {
		observe, trace = func(service.Kind, time.Duration, int) {}, nil
	}
	h.mux.HandleFunc(r.path, func(w http.ResponseWriter, req *http.Request) {
		if r.need != auth.Take || trace != nil { // next does so itself if necessary
			req = withRequestID(w, req)
		}
		if r.path == "/{$}" && h.config.Console != nil && h.config.Console.Matches(req) {
			h.config.Console.ServeHTTP(w, req)
			return
		}
		if !slices.Contains(r.methods, req.Method) {
			w.Header().Set("Allow", strings.Join(r.methods, ", "))
			h.fail(w, req, service.Problemf(service.MethodNotAllowed, "this path does not support %s, only %s",
				textfmt.Quote(req.Method), joinNames(r.methods)))
			return
		}
		begin := time.Now()
		if trace != nil {
			ctx, end := trace(req, r.path)
			watched := &statusWriter{ResponseWriter: w}
			defer func() { end(watched.sent()) }()
			w, req = watched, req.WithContext(ctx)
		}
		defer func() {
			if what := recover(); what != nil {
				h.logPanic(w, req, what)
				observe(service.Internal, time.Since(begin), 1)
				panic(http.ErrAbortHandler) // net/http closes the connection: part of an answer may have been sent
			}
		}()
		kind := service.NoProblem
		if p := h.serveRoute(r, w, req); p != nil {
			h.fail(w, req, p)
			kind = p.Kind
		}
		observe(kind, time.Since(begin), 1)
	})
}

// serveRoute serves a request if the client may make it, or returns a problem.
func (h *Handler) serveRoute(r route, w http.ResponseWriter, req *http.Request) *service.Problem {
	creds, need := credentials(req), r.need
	if need == auth.See && req.Method != http.MethodGet && req.Method != http.MethodHead {
		need = auth.Change
	}
	if need != auth.Nothing {
		if p := h.front.Allow(creds, need, req.PathValue("name")); p != nil {
			return p
		}
	}
	if r.need != auth.Nothing && (h.front.Auth != nil || req.ContentLength == 0) { // otherwise the body may never arrive
		listen.MarkKnown(listen.ConnIn(req.Context()))
	}
	if !r.query {
		if _, errs := readParams(req.URL.RawQuery); errs != nil {
			return errs.problem()
		}
	}
	return r.serve(h, w, req, creds)
}
