package httpapi

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"github.com/firnid/firn/server/internal/protocol/listen"
)

// tlsKey is the context key for the TLS state of a connection. http.Server knows
// it only for connections that it can see to be of TLS.
type tlsKey struct{}

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
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			if state := listen.StateOf(conn); state != nil {
				ctx = context.WithValue(ctx, tlsKey{}, state)
			}
			return ctx
		},
		MaxHeaderBytes:    h.config.Limits.Header,
		ReadHeaderTimeout: h.config.Limits.Read,
		// At least as long as a whole request: it keeps running during the answer.
		ReadTimeout:  h.config.Limits.Read + h.config.Limit + h.config.Limits.Write,
		WriteTimeout: h.config.Limit + h.config.Limits.Write,
		IdleTimeout:  h.config.Limits.Idle,
		ErrorLog:     slog.NewLogLogger(h.config.Logger.Handler(), slog.LevelWarn),
	}
}
