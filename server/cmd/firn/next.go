package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
)

// A nexting is what the command next was told.
type nexting struct {
	a          *app
	count      uint64
	layout     firn.Layout
	ownLayout  bool // no flag says another
	node       string
	allowLocal bool
	store      string
	name       string
	nodes      *sequencer.Range
	allow      allowClock
	noCreate   bool
	format     firn.Format
	ownFormat  bool // no flag says another than the layout's
	asJSON     bool
}

func newNext(a *app) *cobra.Command {
	n := nexting{a: a, count: 1, layout: firn.Default()}
	cmd := &cobra.Command{
		Use:   "next [-n N] [--layout LAYOUT] [--store URL] [--sequencer NAME] [--node NODE] [--format FORMAT]",
		Short: "Make IDs",
		Long: `Next makes IDs and prints one per line; with --format raw it writes their
bytes, 8 or 16 each.

The IDs are those of a sequencer: no two are equal, whatever other processes with
the same store make at the same time. It is created when it is first used, with
the layout; without --sequencer it is one for the layout.

` + storeHelp + `

With --node and no --store, no store is used: the number is static, and nothing
but you keeps it apart from those of others. It is a number, or the pieces that
the layout has names for (datacenter=9,worker=7); env:NAME takes it from an
environment variable, hostname from what the host's name ends in (ids-7), and
if:NAME is the MAC address of a network card. Two processes with the same static
number make the same IDs when they run at the same time. With --store, --node
pins the number: it is had when nobody else holds it.`,
		Example: `  firn next
  firn next -n 5 --layout hazelcast
  firn next --sequencer orders --store dir:/srv/firn
  firn next --layout flake-idgen --node datacenter=9,worker=7 --format base62
  firn next --layout uuidv7 --node env:NODE_ID --json
  firn next --layout boundary --node if:eth0`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n.ownLayout, n.ownFormat = !cmd.Flags().Changed("layout"), !cmd.Flags().Changed("format")
			return n.run(cmd.Context())
		},
	}
	numberVar(cmd, &n.count, "count", "n", "N", "how many IDs")
	layoutVar(cmd, &n.layout, "layout of the IDs")
	storeVar(cmd, &n.store)
	cmd.Flags().Var(&value[string]{&n.name, notEmpty, nil, "NAME"}, "sequencer", "the sequencer to make IDs of (default one for the layout)")
	a.completeSequencer(cmd, &n.store)
	cmd.Flags().Var(&value[string]{&n.node, notEmpty, nil, "NODE"}, "node", "static node ID, with --store a pinned one: 9, datacenter=9,worker=7, env:NAME, hostname or if:NAME")
	nodesVar(cmd, &n.nodes)
	cmd.Flags().BoolVar(&n.noCreate, "no-create", false, "fail if the sequencer does not exist: a mistyped name would create another one")
	clockVars(cmd, &n.allow)
	cmd.Flags().BoolVar(&n.allowLocal, "allow-local-mac", false, "let --node if:NAME take an address that software made up")
	formatVar(cmd, &n.format, "format", "f", "how to write them (default the layout's own)")
	cmd.Flags().BoolVar(&n.asJSON, "json", false, `print {"id":"…"} per line`)
	return cmd
}

func (n *nexting) run(ctx context.Context) error {
	static := n.node != "" && n.store == ""
	switch {
	case n.count == 0:
		return misuse("", "--count 0 makes no ID")
	case n.layout.ReadOnly():
		return misuse("firn layout lists what can be made", "%w", errReadOnly(n.layout))
	case static && (n.name != "" || n.nodes != nil):
		return misuse("add --store to take the number from one", "--node without --store is a static number, which has no --sequencer and no --nodes")
	case n.node != "" && n.nodes != nil:
		return misuse("", "either --node or --nodes, not both")
	case static && n.noCreate:
		return misuse("add --store", "--no-create is for sequencers of a store, and --node without --store is a static number")
	case static && (n.allow.behind || n.allow.ahead):
		return misuse("leave it out", "--allow-clock-behind and --allow-clock-ahead compare clocks with those of a store, and --node without --store is a static number")
	case n.allowLocal && !strings.HasPrefix(n.node, "if:"):
		return misuse("", "--allow-local-mac is for --node if:NAME")
	}
	if static {
		if n.a.getenv(storeEnv) != "" {
			n.a.note("$%s is not used: --node without --store is a static number", storeEnv)
		}
		r, err := n.record()
		if err != nil {
			return err
		}
		node, err := readNode(n.layout, n.node, n.allowLocal)
		if err != nil {
			return err
		}
		return generate(ctx, n.a, n.layout, node, n.count, r)
	}
	if n.name != "" {
		if err := grant.CheckName(n.name); err != nil {
			return misuse("", "--sequencer: %w", err)
		}
	}
	if n.name == "" && n.ownLayout {
		n.name = nameOf(n.layout) // as it is, whoever made it
	}
	if !n.ownLayout {
		// Before anything is written.
		if _, _, err := n.resolve(); err != nil {
			return err
		}
	}
	return n.a.withStore(ctx, n.store, false, func(s grant.Store) error { return n.fromStore(ctx, s) })
}

// record is how IDs of the layout are written.
func (n *nexting) record() (record, error) {
	if n.ownFormat {
		n.format = n.layout.Format()
	}
	if err := n.format.Fits(n.layout.Bits()); err != nil {
		return record{}, misuse("leave --format out for the layout's own", "--format %s: %w", n.format, plain(err))
	}
	switch {
	case n.format == firn.Raw && n.asJSON:
		return record{}, misuse("", "--format raw writes bytes, which --json cannot hold")
	case n.format == firn.Raw && n.a.lookOf(n.a.stdout).terminal:
		return record{}, misuse("send them to a file or a pipe, or use --format hex", "--format raw writes bytes that a terminal cannot show")
	}
	return recordOf(n.format, n.asJSON), nil
}

// resolve is record, and the node IDs that may be taken; nil are all.
func (n *nexting) resolve() (r record, nodes *sequencer.Range, err error) {
	if r, err = n.record(); err != nil || n.node == "" {
		return r, n.nodes, err
	}
	node, err := readNode(n.layout, n.node, n.allowLocal)
	return r, &sequencer.Range{Lo: node, Hi: node}, err
}

// fromStore writes IDs of a sequencer of the store.
func (n *nexting) fromStore(ctx context.Context, s grant.Store) error {
	if n.name == "" {
		n.name = nameOf(n.layout)
	} else if n.ownLayout {
		// As it is, or new with the default.
		info, err := grant.Lookup(ctx, s, n.name)
		if err == nil {
			n.layout = info.Config.Layout
		} else if !errors.Is(err, grant.ErrNotFound) {
			return err
		}
	}
	if n.noCreate {
		if _, err := grant.Lookup(ctx, s, n.name); errors.Is(err, grant.ErrNotFound) {
			return notFound(ctx, s, n.name, err)
		}
	}
	r, nodes, err := n.resolve()
	if err != nil {
		return err
	}
	if nodes != nil && nodes.Hi > n.layout.MaxNode() {
		return misuse("firn sequencer show says what a sequencer has", "the node IDs %d..%d do not fit the layout %s, which has 0..%d", nodes.Lo, nodes.Hi, n.layout, n.layout.MaxNode())
	}
	c := &sequencer.Config{Layout: n.layout, Nodes: nodes, AllowClockBehind: n.allow.behind, AllowClockAhead: n.allow.ahead, MustExist: n.noCreate, Now: n.a.clock}
	return n.a.sequence(ctx, s, n.name, c, n.count, r)
}

// joining bounds how long a command waits for a node ID. A server goes on
// trying; who waits at a terminal wants to know what is wrong.
const joining = 10 * time.Second

// sequence writes count IDs of a sequencer.
func (a *app) sequence(ctx context.Context, s grant.Store, name string, c *sequencer.Config, count uint64, r record) error {
	join, cancel := context.WithTimeout(ctx, joining)
	defer cancel()
	if c.Layout.Bits() == 64 {
		q, err := sequencer.Open(join, s, name, c)
		if err != nil {
			return err
		}
		return writeFrom(ctx, a, q, q.Fill, r.append, count)
	}
	q, err := sequencer.Open128(join, s, name, c)
	if err != nil {
		return err
	}
	return writeFrom(ctx, a, q, q.Fill, r.append128, count)
}

// writeFrom writes count IDs of an open sequencer, and closes it.
func writeFrom[I any](ctx context.Context, a *app, q interface {
	State() sequencer.State
	Close(context.Context) error
}, fill func(context.Context, []I) error, write func([]byte, I) []byte, count uint64) error {
	err := stream(ctx, a.stdout, func(ctx context.Context, ids []I) error {
		late := time.AfterFunc(joining/2, func() {
			if err := q.State().Err; err != nil {
				a.note("waiting for the store: %v", err)
			}
		})
		defer late.Stop()
		return fill(ctx, ids)
	}, write, count)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	if closeErr := q.Close(late); closeErr != nil && err == nil {
		a.note("%s", strings.TrimPrefix(closeErr.Error(), "grant: ")) // the IDs are good
	}
	return err
}

// A record is how an ID is written: between before and after, in format.
type record struct {
	format        firn.Format
	before, after string
}

func recordOf(f firn.Format, asJSON bool) record {
	switch {
	case asJSON:
		return record{f, `{"id":"`, "\"}\n"}
	case f == firn.Raw:
		return record{f, "", ""}
	}
	return record{f, "", "\n"}
}

func (r *record) append(b []byte, id firn.ID) []byte {
	return append(r.format.Append(append(b, r.before...), id), r.after...)
}

func (r *record) append128(b []byte, id firn.ID128) []byte {
	return append(r.format.Append128(append(b, r.before...), id), r.after...)
}

// generate writes count IDs of a new generator.
func generate(ctx context.Context, a *app, l firn.Layout, node, count uint64, r record) error {
	static := firn.StaticGrant(node)
	o := &firn.Options{MaxAhead: staticAhead}
	if l.Bits() == 64 {
		g, err := firn.NewGenerator(l, static, o)
		if err != nil {
			return misuse("", "%w", err)
		}
		return stream(ctx, a.stdout, g.Fill, r.append, count)
	}
	g, err := firn.NewGenerator128(l, static, o)
	if err != nil {
		return misuse("", "%w", err)
	}
	return stream(ctx, a.stdout, g.Fill, r.append128, count)
}

// stream writes IDs as they come, a batch at a time.
func stream[I any](ctx context.Context, w io.Writer, fill func(context.Context, []I) error, write func([]byte, I) []byte, count uint64) error {
	ids := make([]I, min(count, 4096))
	out := newRecordWriter(w)
	for count > 0 {
		ids = ids[:min(count, uint64(len(ids)))]
		if err := fill(ctx, ids); err != nil {
			return storeError(err)
		}
		for _, id := range ids {
			if err := out.end(write(out.begin(), id)); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		count -= uint64(len(ids))
	}
	return nil
}

// generatorError says how to do better.
func generatorError(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, firn.ErrBeforeEpoch):
		return failed("set the clock, or choose a layout with an earlier epoch", "%w", err)
	case errors.Is(err, firn.ErrTimeOver):
		return failed("choose a layout with a later epoch: firn layout shows the last date", "%w", err)
	}
	return failed("", "%w", err)
}
