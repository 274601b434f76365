package httpapi

import (
	"log/slog"
	"net/http"
)

// NewServer makes an http.Server for a Handler, with all limits set. Its caller
// gives it a listener and shuts it down.
func NewServer(h *Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: h,
		// OPTIONS * is for the Handler too, which looks at Host first.
		DisableGeneralOptionsHandler: true,
		Protocols:                    protocols,
		MaxHeaderBytes:               h.limits.Header,
		ReadHeaderTimeout:            h.limits.Read,
		// No shorter than a whole request: it runs on while one is answered.
		ReadTimeout:  h.limits.Read + h.limit + h.limits.Write,
		WriteTimeout: h.limit + h.limits.Write,
		IdleTimeout:  h.limits.Idle,
		ErrorLog:     slog.NewLogLogger(h.log.Handler(), slog.LevelWarn),
	}
}
