package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/user"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/service"
)

// operator returns the user and the host of this process.
func operator() (who, host string) {
	who = "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	host, _ = os.Hostname()
	return who, host
}

// asOperator returns the context of a command that changes sequencers: their
// records name its user and host.
func asOperator(ctx context.Context) context.Context {
	who, at := operator()
	return grant.WithOperator(ctx, who+"@"+at)
}

// audit logs on stderr a change of a sequencer of a store by this command,
// whatever its result, with the attributes of the server's audit lines. On a
// terminal, where nothing collects the log, the command's output and the
// sequencer's record are enough.
func (a *app) audit(ctx context.Context, s grant.Store, what, name string, err error) {
	result := a.changes.Result(ctx, s, name, err)
	if isTerminal(a.stderr) || errors.As(err, new(*exitError)) { // refused before anything was written
		return
	}
	who, at := operator()
	log := slog.New(slog.NewTextHandler(a.stderr, nil))
	service.Audit(ctx, log, service.Client{Name: who, Address: at}, what, result, name, err)
}
