package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/operate/noderun"
)

// A nodeRunCmd has the flags of the command node run.
type nodeRunCmd struct {
	noderun.Config
	logFlags
	app   *app
	store string
	env   []string
}

func newNodeRun(a *app) *cobra.Command {
	n := &nodeRunCmd{app: a, logFlags: defaultLog(),
		Config: noderun.Config{Sequencer: noderun.DefaultSequencer, Window: noderun.DefaultWindow}}
	cmd := command("node run", wantArgs("the command", 1, -1), func(cmd *cobra.Command, args []string) error {
		return n.run(cmd.Context(), args)
	})
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after COMMAND are its own
	storeVar(cmd, &n.store)
	textVar(cmd, &n.Sequencer, "sequencer", "NAME",
		"name of the sequencer whose node IDs to use; created if missing, with 4,194,304 node IDs")
	nodesVar(cmd, &n.Nodes, "node IDs that may be acquired (default 0..1023)")
	f.StringArrayVar(&n.env, "env", []string{"NODE_ID={node}"},
		"environment variable of COMMAND, as `NAME=TEMPLATE`; may be repeated")
	f.DurationVar(&n.Window, "window", n.Window, "window of a sequencer that is created")
	f.DurationVar(&n.Margin, "margin", 0,
		"stop COMMAND this long before the window ends, up to half of the window (default a fifth, up to 2m)")
	f.DurationVar(&n.Grace, "grace", 0,
		"time from SIGTERM to SIGKILL, up to the margin (default half of it, up to 10s)")
	clockVars(cmd, &n.AllowClockBehind, &n.AllowClockAhead)
	n.logFlags.flags(cmd)
	return cmd
}

func (n *nodeRunCmd) run(ctx context.Context, args []string) error {
	n.Environ, n.Stdin, n.Stdout, n.Stderr = os.Environ(), os.Stdin, os.Stdout, os.Stderr
	n.Logger, n.Now = n.logger(n.app), n.app.clock
	for _, text := range n.env {
		v, err := noderun.ParseVariable(text)
		if err != nil {
			return misuse("", "--env: %w", err)
		}
		n.Env = append(n.Env, v)
	}
	for _, text := range args {
		t, err := noderun.ParseTemplate(text)
		if err != nil {
			return misuse("", "%w", err)
		}
		n.Command = append(n.Command, t)
	}
	var wrong faults
	atLeast(&wrong, "window", n.Window, time.Millisecond)
	atLeast(&wrong, "margin", n.Margin, 0)
	atLeast(&wrong, "grace", n.Grace, 0)
	if err := wrong.error(nil); err != nil {
		return err
	}
	// A signal also ends what happens before the command is started.
	signals := make(chan os.Signal, 16)
	n.Signals = signals
	if err := n.app.checkDirectory(n.store); err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx, signals, noderun.Signals()...)
	defer stop()
	err := n.app.withStore(ctx, n.store, false, func(s grant.Store) error {
		n.Store = s
		code, err := noderun.Run(ctx, n.Config)
		var misfit *noderun.ConfigError
		switch {
		case code != 0:
			return &exitError{code: code, err: err}
		case errors.As(err, &misfit):
			return misuse("", "%w", err)
		}
		return err
	})
	if by, ok := errors.AsType[*interruption](context.Cause(ctx)); ok && err != nil {
		// The exit code is not the command's own.
		if exit, ok := errors.AsType[*exitError](err); !ok || exit.code == exitFailed && exit.err != nil {
			return &exitError{code: by.code(), err: context.Canceled}
		}
	}
	return err
}
