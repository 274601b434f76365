package etcdstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/firnid/firn/grant"
)

// unreachable returns why Open has failed with err, for each endpoint: the
// client's own error is about one of them and often does not name the cause.
func unreachable(ctx context.Context, endpoints []string, config *tls.Config, user, prefix string, err error) error {
	if isAuth(rpcError(err)) {
		hint := fmt.Sprintf("check the password of user %q", user)
		switch {
		case user == "":
			hint = "etcd requires a user and a password"
		case errors.Is(rpctypes.Error(rpcError(err)), rpctypes.ErrPermissionDenied):
			hint = fmt.Sprintf("user %q needs a role with: etcdctl role grant-permission ROLE readwrite --prefix=true %s", user, prefix)
		}
		return fmt.Errorf("%w: %w: %s", errAuth, rpcError(err), hint)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", grant.ErrUnreachable, ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	found := make([]string, len(endpoints))
	var wrong atomic.Bool
	var wg sync.WaitGroup
	for i, e := range endpoints {
		wg.Go(func() {
			text, tls := probe(ctx, e, config)
			found[i] = e + ": " + text
			if tls {
				wrong.Store(true)
			}
		})
	}
	wg.Wait()
	kind := grant.ErrUnreachable
	if wrong.Load() {
		kind = errTLS // waiting does not help
	}
	return fmt.Errorf("%w: %s (%w)", kind, strings.Join(found, "; "), err)
}

// rpcError returns the innermost error, which is the client's.
func rpcError(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// probe connects to an endpoint and describes what it finds. wrong reports
// whether the problem is a TLS setting on either side, which does not go away
// by itself.
func probe(ctx context.Context, endpoint string, config *tls.Config) (text string, wrong bool) {
	_, address, _ := strings.Cut(endpoint, "://")
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err.Error(), false
	}
	defer func() { _ = conn.Close() }()
	if config == nil {
		// Any handshake will do: only its success matters.
		err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx)
		if err == nil || isAlert(err) {
			return "it speaks TLS: set TLS, or begin the endpoint with https://", true
		}
		return "it listens but does not answer: is it etcd's client port, and does etcd have a leader?", false
	}
	host, _, _ := net.SplitHostPort(address)
	config = config.Clone()
	config.ServerName, config.NextProtos = cmp.Or(config.ServerName, host), []string{"h2"}
	c := tls.Client(conn, config)
	if err = c.HandshakeContext(ctx); err == nil {
		// With TLS 1.3, a server reports only after the handshake that it
		// requires a certificate.
		_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		if _, e := c.Read(make([]byte, 1)); e != nil && !errors.Is(e, os.ErrDeadlineExceeded) {
			err = e
		}
	}
	switch {
	case err == nil:
		return "TLS works but it does not answer: does etcd have a leader?", false
	case errors.Is(err, io.EOF), ctx.Err() != nil: // etcd without TLS closes the connection
		return "it does not use TLS, or does not answer", false
	}
	return fmt.Sprintf("TLS fails: %v", err), true
}

// isAlert reports whether err is a TLS alert from the other side.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" // as named by crypto/tls
}
