package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
)

func newNext(a *app) *cobra.Command {
	var (
		count      = uint64(1)
		layout     = firn.Default()
		node       string
		allowLocal bool
		format     firn.Format
		asJSON     bool
	)
	cmd := &cobra.Command{
		Use:   "next [-n N] [--layout LAYOUT] [--node NODE] [--format FORMAT]",
		Short: "Make IDs",
		Long: `Next makes IDs and prints one per line; with --format raw it writes their
bytes, 8 or 16 each.

The node is a number, or the pieces that the layout has names for
(datacenter=9,worker=7). env:NAME takes the number from an environment variable,
hostname the one that the host's name ends in (ids-7), and if:NAME the MAC
address of a network card.

Two processes with the same node number can make the same IDs when they run at
the same time: give each its own --node. One after the other is safe, a firn
next after a firn serve too, as long as the clock is not set back in between
and the one before did not have a larger --max-ahead than 5ms.`,
		Example: `  firn next
  firn next -n 5 --layout hazelcast --node 7
  firn next --layout flake-idgen --node datacenter=9,worker=7 --format base62
  firn next --layout uuidv7 --node env:NODE_ID --json
  firn next --layout boundary --node if:eth0`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count == 0 {
				return misuse("", "--count 0 makes no ID")
			}
			if layout.ReadOnly() {
				return misuse("firn layout lists what can be made", "%w", errReadOnly(layout))
			}
			if !cmd.Flags().Changed("format") {
				format = layout.Format()
			}
			if err := format.Fits(layout.Bits()); err != nil {
				return misuse("leave --format out for the layout's own", "--format %s: %w", format, plain(err))
			}
			if format == firn.Raw {
				if asJSON {
					return misuse("", "--format raw writes bytes, which --json cannot hold")
				}
				if a.lookOf(a.stdout).terminal {
					return misuse("send them to a file or a pipe, or use --format hex", "--format raw writes bytes that a terminal cannot show")
				}
			}
			n := uint64(0)
			if node != "" {
				var err error
				if n, err = readNode(layout, node, allowLocal); err != nil {
					return err
				}
			} else if a.lookOf(a.stderr).terminal {
				a.note("this is node 0, as any firn next without --node: two at the same time can make the same IDs")
			}
			return generate(cmd.Context(), a, layout, n, count, recordOf(format, asJSON))
		},
	}
	numberVar(cmd, &count, "count", "n", "N", "how many IDs")
	layoutVar(cmd, &layout, "layout of the IDs")
	nodeVar(cmd, &node, "number of this generator")
	cmd.Flags().BoolVar(&allowLocal, "allow-local-mac", false, "let --node if:NAME take an address that software made up")
	formatVar(cmd, &format, "format", "f", "how to write them (default the layout's own)")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"id":"…"} per line`)
	return cmd
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
	grant := firn.StaticGrant(node)
	o := &firn.Options{MaxAhead: staticAhead}
	if l.Bits() == 64 {
		g, err := firn.NewGenerator(l, grant, o)
		if err != nil {
			return misuse("", "%w", err)
		}
		return stream(ctx, a.stdout, g.Fill, r.append, count)
	}
	g, err := firn.NewGenerator128(l, grant, o)
	if err != nil {
		return misuse("", "%w", err)
	}
	return stream(ctx, a.stdout, g.Fill, r.append128, count)
}

// stream writes IDs as they come, a batch at a time.
func stream[I any](ctx context.Context, w io.Writer, fill func(context.Context, []I) error, write func([]byte, I) []byte, count uint64) error {
	ids := make([]I, min(count, 4096))
	var buf []byte
	for count > 0 {
		ids = ids[:min(count, uint64(len(ids)))]
		if err := fill(ctx, ids); err != nil {
			return generatorError(err)
		}
		buf = buf[:0]
		for _, id := range ids {
			buf = write(buf, id)
		}
		if _, err := w.Write(buf); err != nil {
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
