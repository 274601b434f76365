package main

import (
	"context"
	"errors"
	"os"

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
	n := &nodeRunCmd{app: a, logFlags: defaultLog(), Config: noderun.Config{Sequencer: noderun.DefaultSequencer, Window: noderun.DefaultWindow}}
	cmd := &cobra.Command{
		Use:   "run [--store URL] [--sequencer NAME] [--nodes LO..HI] [--env NAME=TEMPLATE]... -- COMMAND [ARG]...",
		Short: "Run a program with a node ID that no other program holds",
		Long: `Run acquires a node ID, runs COMMAND with it, and releases it when COMMAND ends. It is
for programs with their own ID generator, such as a Snowflake library.

  firn node run --store etcd://etcd:2379 -- node server.js

COMMAND gets the node ID in the environment variable NODE_ID. --env sets other variables
instead, and {node} in an argument is replaced too. {node%32} and {node/32} are the
remainder and the quotient, for generators with two numbers:

  --env WORKER_ID={node%32} --env DATACENTER_ID={node/32}

Run renews the window of the node ID while COMMAND runs. It stops COMMAND (with SIGTERM,
and SIGKILL after the grace period) if this machine's clock comes within the margin of the
window's end, or is set back to before its beginning. The store may be unreachable for
about half a window without any effect.

Two commands never hold one node ID at overlapping times, each by the wall clock of its
machine, as long as firn runs at least once per margin and the processes of COMMAND stay
in its process group. A machine that is suspended for longer may repeat IDs: when it
resumes, firn first stops COMMAND, and logs the time span. Run cannot prevent errors of
the generator in COMMAND itself. If firn is killed, Linux kills COMMAND too, but not the
processes that COMMAND has started; Windows kills all; on other systems COMMAND continues.

Run passes signals on to COMMAND. The exit code is that of COMMAND, or 128 plus the number
of the signal that ended it. It is 124 if COMMAND was stopped because of its window, 126 if
it cannot be run, and 127 if it is not found. Before COMMAND starts, firn's own exit codes
apply: 128 plus the number of the signal if one interrupts it.`,
		Example: `  firn node run --store dir:/srv/firn -- ./server
  firn node run --sequencer workers --nodes 0..31 --env WORKER_ID={node} -- java -jar app.jar
  firn node run -- ./server --datacenter={node/32} --worker={node%32}`,
		Args: takes("the command", 1, -1),
		RunE: func(cmd *cobra.Command, args []string) error { return n.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after COMMAND are its own
	storeVar(cmd, &n.store)
	f.Var(&value[string]{&n.Sequencer, notEmpty, asIs, "NAME"}, "sequencer",
		"name of the sequencer whose node IDs to use; created if missing, with 4,194,304 node IDs")
	nodesVar(cmd, &n.Nodes, "node IDs that may be acquired (default 0..1023)")
	f.StringArrayVar(&n.env, "env", []string{"NODE_ID={node}"}, "environment variable of COMMAND, as `NAME=TEMPLATE`; may be repeated")
	f.DurationVar(&n.Window, "window", n.Window, "window of a sequencer that is created")
	f.DurationVar(&n.Margin, "margin", 0, "stop COMMAND this long before the window ends, up to half of the window (default a fifth, up to 2m)")
	f.DurationVar(&n.Grace, "grace", 0, "time from SIGTERM to SIGKILL, up to the margin (default half of it, up to 10s)")
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
	switch {
	case n.Window <= 0:
		return misuse("", "--window %v: it must be above 0", n.Window)
	case n.Margin < 0:
		return misuse("", "--margin %v: it cannot be negative", n.Margin)
	case n.Grace < 0:
		return misuse("", "--grace %v: it cannot be negative", n.Grace)
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
		var misfit *noderun.RangeError
		switch {
		case code != 0:
			return &exitError{code: code, err: err}
		case errors.As(err, &misfit):
			return misuse("", "%w", err)
		}
		return err
	})
	if by, ok := errors.AsType[*interruption](context.Cause(ctx)); ok && err != nil {
		if exit, ok := errors.AsType[*exitError](err); !ok || exit.code == exitFailed && exit.err != nil { // not the command's own code
			return &exitError{code: by.code(), err: context.Canceled}
		}
	}
	return err
}
