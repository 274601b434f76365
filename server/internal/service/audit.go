package service

import (
	"context"
	"log/slog"
)

// A change is what an audit line says was done to a sequencer. docs/security.md
// lists them.
type change string

const (
	created   change = "created"
	attached  change = "attached"
	detached  change = "detached"
	destroyed change = "destroyed"
)

// A Client is who changes a sequencer.
type Client struct {
	Name    string // in the token file or in a certificate; "" without authentication
	Address string
}

// audit logs that a client has changed a sequencer, or has tried to. The line
// has a fixed set of attributes, so that it can be filtered. The request ID
// comes from ctx.
func audit(ctx context.Context, log *slog.Logger, c Client, done change, name string, err error) {
	result := slog.String("result", "done")
	if err != nil && ctx.Err() != nil {
		result = slog.String("result", "pending") // other processes have yet to follow
	} else if err != nil {
		result = slog.String("result", "failed")
	}
	attrs := []slog.Attr{slog.String("audit", string(done)), result, slog.String("sequencer", name),
		slog.String("principal", c.Name), slog.String("address", c.Address)}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	log.LogAttrs(ctx, slog.LevelInfo, "sequencer "+string(done), attrs...)
}
