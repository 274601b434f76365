package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/lines"
)

func newCompose(a *app) *cobra.Command {
	c := form.Composer{Layout: firn.Default()}
	var (
		node   string
		format form.Form
		prefix string
		asJSON bool
	)
	cmd := command("compose", func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] == "-" {
			return nil
		}
		return noArgs(cmd, args)
	}, func(cmd *cobra.Command, args []string) error {
		c.HasTime = cmd.Flags().Changed("time")
		c.Node = func(l firn.Layout) (uint64, error) { return readNode(l, cmp.Or(node, "0"), true) }
		if len(args) == 1 {
			if cmd.Flags().Changed("format") {
				return misuse("", "compose - prints dec and hex; --format needs a single ID")
			}
			return composeLines(cmd.Context(), a, &c)
		}
		if !c.HasTime {
			return misuse("firn compose --time now", "--time is not given")
		}
		if err := outputForm(cmd, &format, c.Layout, prefix); err != nil {
			return err
		}
		n, err := c.Node(c.Layout)
		if err != nil {
			return err
		}
		id, err := form.Compose(c.Layout, firn.Parts{Time: c.Time, Node: n, Seq: c.Seq})
		if err != nil {
			return misuse(composeHint(c.Layout, err), "%w", err)
		}
		switch {
		case asJSON:
			a.printJSON(id.JSON())
		case format.Is(firn.Raw):
			a.stdout.Write(id)
		default:
			fmt.Fprintf(a.stdout, "%s\n", id.Append(nil, format))
		}
		return nil
	})
	layoutVar(cmd, &c.Layout, parseMadeLayout, "layout of the ID")
	timeVar(cmd, a, &c.Time, "time", "time of the ID: RFC 3339, a date, Unix milliseconds, now or -1h")
	nodeVar(cmd, &node, "node of the ID, 0 by default")
	numberVar(cmd, &c.Seq, "seq", "", "sequence number within the tick")
	formVar(cmd, &format, "format", "f", "output format (default the layout's own)")
	prefixVar(cmd, &prefix, "prefix of typed text")
	jsonVar(cmd, &asJSON)
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

// composeLines composes an ID from each line.
func composeLines(ctx context.Context, a *app, c *form.Composer) error {
	out := lines.NewWriter(a.stdout.Writer)
	var t tally
	to := json.NewEncoder(out)
	err := lines.EachLine(ctx, a.stdin, out, func(_ int, line string, err error) error {
		t.all++
		var id form.ID
		if err == nil {
			id, err = c.Compose(line)
		}
		if err != nil {
			t.bad++
			return to.Encode(errorJSON(err))
		}
		return to.Encode(id.JSON())
	})
	if err != nil {
		return err
	}
	return t.result(a, "lines")
}
