package httpapi

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
)

// Drain makes /readyz report that the server is about to stop, so that load
// balancers send it no more requests. Requests that still arrive are answered,
// and each answer closes its connection. Call http.Server's Shutdown only after
// load balancers had time to notice.
func (h *Handler) Drain() { h.draining.Store(true) }

// Draining reports whether Drain was called.
func (h *Handler) Draining() bool { return h.draining.Load() }

// healthz reports that the server runs.
func (h *Handler) healthz(w http.ResponseWriter, _ *http.Request, _ *auth.Credentials) *service.Problem {
	return writeText(w, "ok\n")
}

// readyz reports whether requests should be sent to this server.
func (h *Handler) readyz(w http.ResponseWriter, r *http.Request, _ *auth.Credentials) *service.Problem {
	if h.draining.Load() {
		return service.Problemf(service.Draining, "the server is shutting down: send requests to another one")
	}
	err := h.front.Backend.Ready(r.Context())
	if r.Context().Err() != nil {
		return service.Problemf(service.Cancelled, "the request was cancelled") // says nothing about the server
	}
	if p := h.logReadiness(r.Context(), err); p != nil {
		writeProblem(w, r, http.StatusServiceUnavailable, p)
		return nil
	}
	return writeText(w, "ready\n")
}

// logReadiness returns the problem of a server that is not ready. It logs when
// the server becomes unready, when the reason changes, and when it is ready
// again, but not every probe.
func (h *Handler) logReadiness(ctx context.Context, err error) *service.Problem {
	if err == nil {
		if h.unready.Load() != nil && h.unready.Swap(nil) != nil {
			h.front.Logger.LogAttrs(ctx, slog.LevelInfo, "ready again")
		}
		return nil
	}
	p := service.ProblemOf(err, h.front.RequestTimeout, false)
	if was := h.unready.Swap(&p.Kind); was == nil || *was != p.Kind {
		h.front.Logger.LogAttrs(ctx, slog.LevelWarn, "not ready: /readyz answers 503",
			slog.String("reason", p.Kind.String()), slog.Any("error", err))
	}
	return p
}
