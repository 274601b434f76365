package main

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/layouts"
	"github.com/firnid/firn/server/internal/ids/lines"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/service"
)

// A nextCmd has the flags of the command next.
type nextCmd struct {
	sequencer.Options
	app        *app
	count      uint64
	ownLayout  bool // no flag names another one
	node       string
	allowLocal bool
	store      string
	name       string
	format     form.Form
	ownFormat  bool // no flag names another one than the layout's
	asJSON     bool
	veiled     string // file with keys
	server     string
	remote     remoteFlags
}

func newNext(a *app) *cobra.Command {
	n := nextCmd{app: a, count: 1,
		Options: sequencer.Options{Layout: firn.Default(), Now: a.clock}}
	cmd := command("next", noArgs, func(cmd *cobra.Command, _ []string) error {
		n.ownLayout, n.ownFormat = !cmd.Flags().Changed("layout"), !cmd.Flags().Changed("format")
		return n.run(cmd.Context())
	})
	numberVar(cmd, &n.count, "count", "n", "number of IDs")
	layoutVar(cmd, &n.Layout, parseGeneratedLayout, "layout of the IDs")
	storeVar(cmd, &n.store)
	textVar(cmd, &n.name, "sequencer", "NAME", "name of the sequencer (default one named after the layout)")
	nodeVar(cmd, &n.node, "static node ID, pinned by --store")
	nodesVar(cmd, &n.Nodes, "node IDs that may be taken from the store (default all of the layout)")
	cmd.Flags().BoolVar(&n.MustExist, "no-create", false,
		"fail if the sequencer does not exist: a mistyped name would create another one")
	clockVars(cmd, &n.AllowClockBehind, &n.AllowClockAhead)
	cmd.Flags().BoolVar(&n.allowLocal, "allow-local-mac", false,
		"let --node if:NAME use a MAC address that was assigned by software")
	formVar(cmd, &n.format, "format", "f", "output format (default the layout's own)")
	textVar(cmd, &n.veiled, "veil-key-file", "FILE",
		"file with the keys for --format veiled; see firn convert --help")
	jsonVar(cmd, &n.asJSON)
	textVar(cmd, &n.server, "server", "URL", "server that makes the IDs, such as http://127.0.0.1:3476")
	n.remote.vars(cmd)
	return cmd
}

func (n *nextCmd) run(ctx context.Context) error {
	static := n.node != "" && n.store == ""
	switch {
	case n.count == 0:
		return misuse("", "--count 0: it must be 1 or more")
	case static && (n.name != "" || n.Nodes != nil || n.MustExist || n.AllowClockBehind || n.AllowClockAhead):
		return misuse("add --store to use a store",
			"--node without --store is a static node ID, which excludes --sequencer, --nodes, --no-create, "+
				"--allow-clock-behind and --allow-clock-ahead")
	case n.node != "" && n.Nodes != nil:
		return misuse("", "either --node or --nodes, not both")
	case n.allowLocal && !strings.HasPrefix(n.node, "if:"):
		return misuse("", "--allow-local-mac needs --node if:NAME")
	case n.server == "" && n.remote != (remoteFlags{}):
		return misuse("add --server URL", "--token, --token-file, --ca, --cert and --key need a server")
	case n.server != "" && (n.store != "" || n.node != "" || n.Nodes != nil || !n.ownLayout ||
		n.MustExist || n.veiled != "" || n.AllowClockBehind || n.AllowClockAhead):
		return misuse("leave them out",
			"with --server, the server decides on store, node ID, layout and keys: of the other flags only "+
				"--sequencer, --count, --format and --json are possible")
	}
	if static {
		if n.app.getenv(storeEnv) != "" {
			n.app.note("ignoring $%s: --node without --store is a static node ID", storeEnv)
		}
		if err := n.checkForm(); err != nil {
			return err
		}
		if n.format.IsTyped() || n.format.IsVeiled() {
			return misuse("use --store, or convert the IDs with firn convert",
				"--format %s needs a sequencer, but --node without --store is a static node ID", &n.format)
		}
		node, err := readNode(n.Layout, n.node, n.allowLocal)
		if err != nil {
			return err
		}
		if n.Layout.Bits() == 128 {
			return fromGenerator(ctx, n, node, firn.NewGenerator128)
		}
		return fromGenerator(ctx, n, node, firn.NewGenerator)
	}
	if n.name != "" {
		if err := service.CheckName(n.name); err != nil {
			return misuse("", "--sequencer: %w", err)
		}
	}
	n.name = cmp.Or(n.name, layouts.Name(n.Layout))
	if n.server != "" {
		if err := n.app.checkRaw("format", &n.format, n.asJSON); err != nil {
			return err
		}
		return n.fromServer(ctx)
	}
	if !n.ownLayout {
		// Check before anything is written.
		if err := n.resolve(); err != nil {
			return err
		}
	}
	if err := n.app.checkDirectory(n.store); err != nil {
		return err
	}
	return n.app.withStore(ctx, n.store, false, func(s grant.Store) error { return n.fromStore(ctx, s) })
}

// checkForm completes and checks the form of the output.
func (n *nextCmd) checkForm() error {
	if n.ownFormat {
		n.format = form.Of(n.Layout.Format())
	}
	if err := n.format.CheckBits(n.Layout.Bits()); err != nil {
		return misuse("leave out --format for the layout's own", "--format %s: %w", &n.format, textfmt.Plain(err))
	}
	return n.app.checkRaw("format", &n.format, n.asJSON)
}

// resolve checks the form of the output, and pins the node ID of --node.
func (n *nextCmd) resolve() error {
	if err := n.checkForm(); err != nil || n.node == "" {
		return err
	}
	node, err := readNode(n.Layout, n.node, n.allowLocal)
	n.Nodes = &grant.NodeRange{Lo: node, Hi: node}
	return err
}

// fromStore writes IDs of a sequencer in the store.
func (n *nextCmd) fromStore(ctx context.Context, s grant.Store) error {
	info, err := grant.Lookup(ctx, s, n.name)
	switch {
	case err != nil && (n.MustExist || !errors.Is(err, grant.ErrNotFound)):
		return err
	case err == nil && n.ownLayout:
		n.Layout = info.Config.Layout
	}
	if n.format.IsVeiled() {
		v, err := (&veilFlags{n.veiled, n.name}).veil(n.app, n.Layout)
		if err != nil {
			return err
		}
		n.format = form.VeiledBy(v)
	}
	if n.format.IsTyped() {
		if err := n.format.SetPrefix(info.Config.Prefix); err != nil {
			hint := "firn sequencer create " + n.name + " --prefix order"
			if info.Name != "" {
				hint = "convert the IDs with firn convert, or destroy the sequencer and create it again with --prefix order"
			}
			return misuse(hint, "--format typed: sequencer %s: %w", n.name, err)
		}
	}
	if err := n.resolve(); err != nil {
		return err
	}
	if err := n.Nodes.Check(n.Layout); err != nil {
		return misuse("run firn sequencer show for the settings of a sequencer", "%w", err)
	}
	if n.Layout.Bits() == 128 {
		return writeFrom(ctx, n, s, sequencer.Open128)
	}
	return writeFrom(ctx, n, s, sequencer.Open)
}

// writeFrom writes IDs of the sequencer that open opens.
func writeFrom[I firn.AnyID](ctx context.Context, n *nextCmd, s grant.Store, open opener[I]) error {
	return withSequencer(ctx, n.app, s, n.name, &n.Options, open, func(q *sequencer.SequencerOf[I]) error {
		return writeIDs(ctx, n, func(ctx context.Context, ids []I) error {
			late := time.AfterFunc(joinLimit/2, func() {
				if err := q.Status().Err; err != nil {
					n.app.note("waiting for the store: %v", err)
				}
			})
			defer late.Stop()
			return q.Fill(ctx, ids)
		})
	})
}

// An opener is sequencer.Open or sequencer.Open128.
type opener[I firn.AnyID] func(context.Context, grant.Store, string, *sequencer.Options) (
	*sequencer.SequencerOf[I], error)

// withSequencer opens a sequencer, calls use, and closes it. IDs are valid even
// if closing fails.
func withSequencer[I firn.AnyID](ctx context.Context, a *app, s grant.Store, name string, o *sequencer.Options,
	open opener[I], use func(*sequencer.SequencerOf[I]) error) error {
	join, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	q, err := open(join, s, name, o)
	if err != nil {
		return err
	}
	err = use(q)
	if closeErr := q.Close(ctx); closeErr != nil && err == nil {
		a.note("%s", textfmt.Message(closeErr))
	}
	return err
}

// fromGenerator writes IDs of a new generator that open opens.
func fromGenerator[I firn.AnyID](ctx context.Context, n *nextCmd, node uint64,
	open func(firn.Layout, firn.Grant, *firn.Options) (*firn.GeneratorOf[I], error)) error {
	g, err := open(n.Layout, firn.StaticGrant(node), nil)
	if err != nil {
		return misuse("", "%w", err)
	}
	return writeIDs(ctx, n, g.Fill)
}

// writeIDs writes IDs as they come, one batch at a time.
func writeIDs[I firn.AnyID](ctx context.Context, n *nextCmd, fill func(context.Context, []I) error) error {
	before, after := "", "\n"
	switch {
	case n.asJSON:
		before, after = `{"id":"`, "\"}\n"
	case n.format.Is(firn.Raw):
		after = ""
	}
	ids := make([]I, min(n.count, 4096))
	out := lines.NewWriter(n.app.stdout.Writer)
	for left := n.count; left > 0; left -= uint64(len(ids)) {
		ids = ids[:min(left, uint64(len(ids)))]
		if err := fill(ctx, ids); err != nil {
			return storeError(err)
		}
		for _, id := range ids {
			b := form.Append(append(out.AvailableBuffer(), before...), id, &n.format)
			if _, err := out.Write(append(b, after...)); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}
