package httpapi

import (
	"log/slog"
	"net/http"
	"time"
)

// Limits of a connection. A request has no body, so all that a client sends is
// its header: whoever needs longer than this, or more, is not asking for IDs.
const (
	maxHeaderBytes = 16 << 10         // net/http adds 4 KiB to this; beyond it answers 431
	headerTimeout  = 10 * time.Second // from the first byte of a request to the end of its header
	bodyTimeout    = 10 * time.Second // for a body, which is an error or empty
	writeTimeout   = 30 * time.Second // for the answer, after the limit of the request
	idleTimeout    = 2 * time.Minute  // between requests; longer than most clients keep theirs
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
		MaxHeaderBytes:               maxHeaderBytes,
		ReadHeaderTimeout:            headerTimeout,
		// No shorter than a whole request: it runs on while one is answered.
		ReadTimeout:  headerTimeout + h.limit + writeTimeout,
		WriteTimeout: h.limit + writeTimeout,
		IdleTimeout:  idleTimeout,
		ErrorLog:     slog.NewLogLogger(h.log.Handler(), slog.LevelWarn),
	}
}
