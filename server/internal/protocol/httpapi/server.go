package httpapi

import (
	"log/slog"
	"net/http"

	"github.com/firnid/firn/server/internal/protocol/listen"
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
		ConnContext:                  listen.WithConn,
		MaxHeaderBytes:               h.front.Limits.Header,
		ReadHeaderTimeout:            h.front.Limits.Read,
		// At least as long as a whole request: it keeps running during the
		// answer.
		ReadTimeout:  h.front.Limits.Read + h.front.RequestTimeout + h.front.Limits.Write,
		WriteTimeout: h.front.RequestTimeout + h.front.Limits.Write,
		IdleTimeout:  h.front.Limits.Idle,
		ErrorLog:     slog.NewLogLogger(h.front.Logger.Handler(), slog.LevelWarn),
	}
}
