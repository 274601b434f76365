package service

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/auth"
)

// The changes of a sequencer that a server makes, as audit lines name them: as
// in grant.Change.What. docs/security.md lists all.
const (
	opCreate  = "create"
	opAttach  = "attach"
	opDetach  = "detach"
	opDestroy = "destroy"
)

// A Client is who changes a sequencer.
type Client struct {
	// Name is that in the token file or in a certificate, or the user of a
	// command; "" without authentication.
	Name    string
	Address string // or host
}

// clientOf returns the client with these credentials.
func clientOf(c *auth.Credentials) Client { return Client{c.Name(), c.Address} }

// operator returns the client as the record of a sequencer names it.
func (c Client) operator() string {
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil {
		host = c.Address
	}
	return cmp.Or(c.Name, host)
}

// A WriteOutcome sees what became of the writes of a change, so that its audit
// line says what happened, and not what was asked for. The zero value is ready
// for use, for one change at a time.
type WriteOutcome struct{ applied, unknown atomic.Bool }

// Wrap returns a Store whose writes the WriteOutcome sees.
func (w *WriteOutcome) Wrap(s grant.Store) grant.Store {
	observe := func(ctx context.Context, request grant.Request, _ string) (context.Context, func(bool, error)) {
		return ctx, func(applied bool, err error) {
			if applied {
				w.applied.Store(true)
			} else if request == grant.RequestCAS && err != nil && !errors.Is(err, grant.ErrNotSent) {
				w.unknown.Store(true)
			}
		}
	}
	return grant.Observe(s, observe)
}

// Result returns the result of a change that returned err, as audit lines have
// it, and forgets the change. s is the store of the sequencer.
func (w *WriteOutcome) Result(ctx context.Context, s grant.Store, name string, err error) string {
	applied, unknown := w.applied.Swap(false), w.unknown.Swap(false)
	switch {
	case err == nil && !applied && !unknown:
		return "unchanged"
	case err == nil:
		return "done"
	case applied:
		// Part of it is done. Another operator may have undone it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		info, e := grant.Lookup(ctx, s, name)
		if what := info.LastChange.What; e == nil && info.State == grant.Attached && (what == "attach" || what == "create") {
			return "failed"
		}
		return "pending"
	case unknown:
		return "unknown"
	}
	return "failed" // nothing was sent
}

// Audit logs a change of a sequencer by a client, whatever its result. what
// names it as grant.Change.What does. The line has a fixed set of attributes, so
// that it can be filtered. The request ID comes from ctx.
func Audit(ctx context.Context, log *slog.Logger, c Client, what, result, name string, err error) {
	attrs := []slog.Attr{slog.String("audit", what), slog.String("result", result), slog.String("sequencer", name),
		slog.String("principal", c.Name), slog.String("address", c.Address)}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	log.LogAttrs(ctx, slog.LevelInfo, "sequencer change", attrs...)
}
