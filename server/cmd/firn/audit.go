package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/user"

	"github.com/firnid/firn/grant"
)

// audit logs on stderr that this command has changed a sequencer, or has tried
// to, with the attributes of the server's audit lines. On a terminal, where
// nothing collects the log, the command's output is enough.
func (a *app) audit(done, name string, err error) {
	if isTerminal(a.stderr) || errors.As(err, new(*exitError)) { // refused before anything was written
		return
	}
	who := "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	host, _ := os.Hostname()
	attrs := []any{"audit", done, "result", "done", "sequencer", name, "principal", who, "address", host}
	if err != nil {
		attrs[3] = "failed"
		if errors.Is(err, context.Canceled) || errors.Is(err, grant.ErrEarly) {
			attrs[3] = "pending" // other processes have yet to follow
		}
		attrs = append(attrs, "error", err)
	}
	slog.New(slog.NewTextHandler(a.stderr, nil)).Info("sequencer "+done, attrs...)
}
