package stores

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/firnid/firn/server/internal/access/tlsconf"
)

// isNetwork reports whether err is a network error that may go away, and not
// one of settings: an unknown host name, a refused connection, a timeout.
func isNetwork(err error) bool {
	if isTLS(err) {
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn)
}

// isTLS reports whether err means that the two sides do not agree on TLS.
func isTLS(err error) bool { return tlsconf.Hint(err, "", "") != "" }
