package httpapi

import (
	"log/slog"
	"net/http"
)

// NewServer makes an http.Server for a Handler, with all limits set. The caller
// gives it a listener and shuts it down.
func NewServer(h *Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: h,
		// The Handler answers OPTIONS * too, after checking Host.
		DisableGeneralOptionsHandler: true,
		Protocols:                    protocols,
		MaxHeaderBytes:               h.limits.Header,
		ReadHeaderTimeout:            h.limits.Read,
		// At least as long as a whole request: it keeps running during the answer.
		ReadTimeout:  h.limits.Read + h.limit + h.limits.Write,
		WriteTimeout: h.limit + h.limits.Write,
		IdleTimeout:  h.limits.Idle,
		ErrorLog:     slog.NewLogLogger(h.log.Handler(), slog.LevelWarn),
	}
}
