package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/records"
)

func newCompose(a *app) *cobra.Command {
	var (
		layout = firn.Default()
		t      time.Time
		node   string
		seq    uint64
		format form.Form
		prefix string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "compose --time TIME [--layout LAYOUT] [--node NODE] [--seq N] | compose -",
		Short: "Compose an ID from its time, node and sequence",
		Long: `Compose makes the ID that a generator would have made at a given time.

  firn compose --time 2026-11-20T10:00:00Z --node 7 --seq 3

Random bits are zero. A value that does not fit the layout is an error; nothing is cut off.

With - it reads JSON objects, one per line, and prints {"dec":"…","hex":"…"}
for each in order:

  {"layout":"hazelcast","time_ms":1700000000000,"node":7,"seq":"3"}

Values may be numbers or strings and are read exactly. Missing keys have the values of
the flags, and unknown keys are errors. For a bad line it prints {"error":"…"},
continues, and exits with 1.`,
		Example: `  firn compose --time 2026-11-20T10:00:00Z --node 7 --seq 3
  firn compose --layout flake-idgen --time 1700000000000 --node datacenter=9,worker=7
  firn compose - < parts.ndjson`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "-" {
				return nil
			}
			return noArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if cmd.Flags().Changed("format") {
					return misuse("", "compose - prints dec and hex; --format needs a single ID")
				}
				c := &inspect.Composer{Layout: layout, Time: t, HasTime: cmd.Flags().Changed("time"), Seq: seq}
				if node != "" {
					c.Node = func(l firn.Layout) (uint64, error) { return readNode(l, node, true) }
				}
				return composeLines(cmd.Context(), a, c)
			}
			if !cmd.Flags().Changed("time") {
				return misuse("firn compose --time now", "--time is missing")
			}
			if layout.ReadOnly() {
				return misuse("", "%w", inspect.ReadOnlyError(layout))
			}
			if err := outputForm(cmd, &format, layout, prefix); err != nil {
				return err
			}
			p := firn.Parts{Time: t, Seq: seq}
			if node != "" {
				var err error
				if p.Node, err = readNode(layout, node, true); err != nil {
					return err
				}
			}
			n, err := inspect.Compose(layout, p)
			if err != nil {
				return misuse(composeHint(layout, err), "%w", err)
			}
			if asJSON {
				return a.printJSON(n.JSON())
			}
			text := n.Append(nil, &format)
			if !format.Is(firn.Raw) {
				text = append(text, '\n')
			}
			_, err = a.stdout.Write(text)
			return err
		},
	}
	layoutVar(cmd, &layout, "layout of the ID")
	timeVar(cmd, a, &t, "time", "time of the ID: RFC 3339, a date, Unix milliseconds, now or -1h")
	nodeVar(cmd, &node, "node of the ID")
	numberVar(cmd, &seq, "seq", "", "sequence number within the tick")
	formVar(cmd, &format, "format", "f", "output format (default the layout's own)")
	prefixVar(cmd, &prefix, "prefix of typed text")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"dec":"…","hex":"…"}`)
	cmd.MarkFlagsMutuallyExclusive("json", "format")
	return cmd
}

// composeHint says what the layout can hold.
func composeHint(l firn.Layout, err error) string {
	var r *firn.RangeError
	if !errors.As(err, &r) {
		return ""
	}
	if r.Field == "time" {
		return "another epoch moves the range: add epoch=… to --layout"
	}
	return "firn layout " + l.String() + " shows its widths"
}

// composeLines answers one record per line.
func composeLines(ctx context.Context, a *app, c *inspect.Composer) error {
	out := records.NewWriter(a.stdout)
	var t tally
	to := json.NewEncoder(out)
	err := records.EachLine(ctx, a.stdin, out, func(_ int, line string, err error) error {
		t.all++
		var n inspect.ID
		if err == nil {
			n, err = c.Compose(line)
		}
		if err != nil {
			t.bad++
			return to.Encode(errorJSON(err))
		}
		return to.Encode(n.JSON())
	})
	if err != nil {
		return err
	}
	return t.result(a, "lines")
}
