package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/records"
	"github.com/firnid/firn/server/internal/ids/textfmt"
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
	cmd := command("compose", func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] == "-" {
			return nil
		}
		return noArgs(cmd, args)
	}, func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			if cmd.Flags().Changed("format") {
				return misuse("", "compose - prints dec and hex; --format needs a single ID")
			}
			return composeLines(cmd.Context(), a, composer{layout: layout, time: t, hasTime: cmd.Flags().Changed("time"), node: node, seq: seq})
		}
		if !cmd.Flags().Changed("time") {
			return misuse("firn compose --time now", "--time is missing")
		}
		if err := outputForm(cmd, &format, layout, prefix); err != nil {
			return err
		}
		p := firn.Parts{Time: t, Seq: seq}
		var err error
		if p.Node, err = readNode(layout, cmp.Or(node, "0"), true); err != nil {
			return err
		}
		id, err := form.Compose(layout, p)
		if err != nil {
			return misuse(composeHint(layout, err), "%w", err)
		}
		switch {
		case asJSON:
			a.printJSON(composed(id))
		case format.Is(firn.Raw):
			a.stdout.Write(id)
		default:
			fmt.Fprintf(a.stdout, "%s\n", id.Append(nil, format))
		}
		return nil
	})
	layoutVar(cmd, &layout, parseMadeLayout, "layout of the ID")
	timeVar(cmd, a, &t, "time", "time of the ID: RFC 3339, a date, Unix milliseconds, now or -1h")
	nodeVar(cmd, &node, "node of the ID, 0 by default")
	numberVar(cmd, &seq, "seq", "", "sequence number within the tick")
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

// composed returns an ID for JSON.
func composed(id form.ID) any {
	return struct {
		Dec string `json:"dec"`
		Hex string `json:"hex"`
	}{string(id.Append(nil, form.Of(firn.Decimal))), hex.EncodeToString(id)}
}

// composeLines answers one record per line.
func composeLines(ctx context.Context, a *app, c composer) error {
	out := records.NewWriter(a.stdout.Writer)
	var t tally
	to := json.NewEncoder(out)
	err := records.EachLine(ctx, a.stdin, out, func(_ int, line string, err error) error {
		t.all++
		var id form.ID
		if err == nil {
			id, err = c.compose(line)
		}
		if err != nil {
			t.bad++
			return to.Encode(errorJSON(err))
		}
		return to.Encode(composed(id))
	})
	if err != nil {
		return err
	}
	return t.result(a, "lines")
}

// A composer composes IDs of records, of any layouts. Keys that a record leaves
// out have the values here.
type composer struct {
	layout  firn.Layout
	time    time.Time
	hasTime bool // otherwise every record needs time_ms
	node    string
	seq     uint64

	last     firn.Layout // of lastText, that of the last record with a layout
	lastText form.Text
}

// compose composes the ID of one record.
func (c *composer) compose(line string) (form.ID, error) {
	r, err := form.ParseRecord(line)
	if err != nil {
		return nil, err
	}
	l := c.layout
	if r.Layout != "" {
		if r.Layout != c.lastText {
			if c.last, err = firn.ParseLayout(string(r.Layout)); err != nil {
				return nil, err
			}
			c.lastText = r.Layout
		}
		l = c.last
	}
	p := firn.Parts{Time: c.time, Seq: c.seq}
	switch {
	case r.TimeMS != "":
		if p.Time, err = textfmt.ParseMillis(string(r.TimeMS)); err != nil {
			return nil, wrongKey("time_ms", r.TimeMS, err)
		}
	case !c.hasTime:
		return nil, errors.New("time_ms is missing")
	}
	if r.Node != "" {
		if p.Node, err = l.ParseNode(string(r.Node)); err != nil {
			return nil, wrongKey("node", r.Node, err)
		}
	} else if p.Node, err = readNode(l, cmp.Or(c.node, "0"), true); err != nil {
		return nil, err
	}
	if r.Seq != "" {
		if p.Seq, err = textfmt.ParseNumber(string(r.Seq)); err != nil {
			return nil, wrongKey("seq", r.Seq, err)
		}
	}
	return form.Compose(l, p)
}

func wrongKey(key string, v form.Text, err error) error {
	return fmt.Errorf("%s %s: %w", key, textfmt.Quote(string(v)), textfmt.Plain(err))
}
