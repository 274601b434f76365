package doctor

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/firnid/firn/server/internal/service"
)

// address checks whether the server can listen, or already does.
func (r *report) address(ctx context.Context, address string) {
	if network, at := split(address); network == "unix" {
		if _, err := os.Lstat(at); errors.Is(err, os.ErrNotExist) {
			r.add("address", OK, "", "%s is free", address)
			return
		}
	} else {
		var l net.ListenConfig
		listener, err := l.Listen(ctx, network, at)
		if err == nil {
			_ = listener.Close()
			r.add("address", OK, "", "%s is free", address)
			return
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			r.add("address", Fix, "choose another address, or run the server as a user that may listen there",
				"the server cannot listen on %s: %v", address, err)
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	answer, body, err := Ask(ctx, address, "/readyz")
	switch {
	case err != nil || answer.Header.Get("X-Request-Id") == "": // which every Firn sends
		r.add("address", Fix, "stop that program, or choose another address", "another program listens on %s", address)
	case answer.StatusCode == http.StatusOK:
		r.add("address", OK, "", "a ready server listens on %s", address)
	default:
		_, _, detail := service.ReadProblem(body)
		r.add("address", Fix, "its log has the cause; see docs/runbooks.md",
			"a server that is not ready listens on %s: %s", address, cmp.Or(detail, answer.Status))
	}
}
