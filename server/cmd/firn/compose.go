package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/inspect"
	"github.com/firnid/firn/server/records"
	"github.com/firnid/firn/server/textfmt"
)

func newCompose(a *app) *cobra.Command {
	var (
		layout = firn.Default()
		t      time.Time
		node   string
		seq    uint64
		format firn.Format
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
			c := composer{layout: layout, time: t, node: node, seq: seq, layouts: make(map[string]firn.Layout)}
			c.hasTime = cmd.Flags().Changed("time")
			if err := noEffect(cmd, "json", "format"); err != nil {
				return err
			}
			if len(args) == 1 {
				if cmd.Flags().Changed("format") {
					return misuse("", "compose - prints dec and hex; --format needs a single ID")
				}
				return c.lines(cmd, a)
			}
			if !c.hasTime {
				return misuse("firn compose --time now", "--time is missing")
			}
			if !cmd.Flags().Changed("format") {
				format = layout.Format()
			}
			if layout.ReadOnly() {
				return misuse("", "%w", errReadOnly(layout))
			}
			if err := format.Fits(layout.Bits()); err != nil {
				return misuse("", "--format %s: %w", format, plain(err))
			}
			p := firn.Parts{Time: t, Seq: seq}
			if node != "" {
				var err error
				if p.Node, err = readNode(layout, node, true); err != nil {
					return err
				}
			}
			n, err := c.compose(layout, p)
			if err != nil {
				return misuse(composeHint(layout, err), "%w", err)
			}
			out := bufio.NewWriter(a.stdout)
			if asJSON {
				fmt.Fprintf(out, "%s\n", n.appendJSON(nil))
				return out.Flush()
			}
			text := n.append(nil, format)
			if format != firn.Raw {
				text = append(text, '\n')
			}
			out.Write(text)
			return out.Flush()
		},
	}
	layoutVar(cmd, &layout, "layout of the ID")
	timeVar(cmd, a, &t, "time", "time of the ID: RFC 3339, a date, Unix milliseconds, now or -1h")
	nodeVar(cmd, &node, "node of the ID")
	numberVar(cmd, &seq, "seq", "", "sequence number within the tick")
	formatVar(cmd, &format, "format", "f", "output format (default the layout's own)")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"dec":"…","hex":"…"}`)
	return cmd
}

// errReadOnly is the error for a layout whose IDs cannot be made.
func errReadOnly(l firn.Layout) error {
	return fmt.Errorf("IDs of layout %s can be read but not made", l)
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

// A composer composes IDs of any layouts. Keys that a record leaves out have
// the values here.
type composer struct {
	layout  firn.Layout
	time    time.Time
	hasTime bool
	node    string
	seq     uint64

	layouts map[string]firn.Layout // already parsed
}

// maxLayouts bounds the memory for a stream with ever new layouts.
const maxLayouts = 1000

// A composed is an ID of either size.
type composed struct {
	wide bool
	id   firn.ID
	id2  firn.ID128
}

// composedOf returns the ID in 8 or 16 bytes.
func composedOf(b []byte) composed {
	if len(b) == 16 {
		return composed{wide: true, id2: firn.ID128(b)}
	}
	return composed{id: firn.ID(binary.BigEndian.Uint64(b))}
}

func (n composed) bits() int {
	if n.wide {
		return 128
	}
	return 64
}

func (n composed) append(b []byte, f firn.Format) []byte {
	if n.wide {
		return f.Append128(b, n.id2)
	}
	return f.Append(b, n.id)
}

func (n composed) appendJSON(b []byte) []byte {
	b = n.append(append(b, `{"dec":"`...), firn.Decimal)
	b = n.append(append(b, `","hex":"`...), firn.Hex)
	return append(b, `"}`...)
}

func (c *composer) compose(l firn.Layout, p firn.Parts) (n composed, err error) {
	switch {
	case l.ReadOnly():
		return n, errReadOnly(l)
	case l.Bits() == 128:
		n.wide = true
		n.id2, err = l.Compose128(p)
	default:
		n.id, err = l.Compose(p)
	}
	return n, err
}

// lines answers one record per line.
func (c *composer) lines(cmd *cobra.Command, a *app) error {
	out := records.NewWriter(a.stdout)
	var t tally
	var buf []byte
	err := records.EachLine(cmd.Context(), a.stdin, out, func(_ int, line string, err error) error {
		t.all++
		var n composed
		if err == nil {
			n, err = c.line(line)
		}
		if err != nil {
			t.bad++
			buf = appendError(buf[:0], err)
		} else {
			buf = n.appendJSON(buf[:0])
		}
		_, err = out.Write(append(buf, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	return t.result(a, "lines")
}

// errEmptyLine is the error for an empty line.
var errEmptyLine = errors.New("the line is empty")

// line composes the ID of one record.
func (c *composer) line(line string) (composed, error) {
	if line == "" {
		return composed{}, errEmptyLine
	}
	r, err := inspect.ParseRecord(line)
	if err != nil {
		return composed{}, err
	}
	l := c.layout
	if r.Layout != "" {
		if l, err = c.parsed(r.Layout); err != nil {
			return composed{}, err
		}
	}
	p := firn.Parts{Time: c.time, Seq: c.seq}
	switch {
	case r.TimeMS != "":
		if p.Time, err = textfmt.ParseMillis(r.TimeMS); err != nil {
			return composed{}, fmt.Errorf("time_ms %s: %w", inspect.Quote(r.TimeMS), err)
		}
	case !c.hasTime:
		return composed{}, errors.New("time_ms is missing")
	}
	switch {
	case r.Node != "":
		if p.Node, err = l.ParseNode(r.Node); err != nil {
			return composed{}, fmt.Errorf("node %s: %w", inspect.Quote(r.Node), plain(err))
		}
	case c.node != "":
		if p.Node, err = readNode(l, c.node, true); err != nil {
			return composed{}, err
		}
	}
	if r.Seq != "" {
		if p.Seq, err = parseNumber(r.Seq); err != nil {
			return composed{}, fmt.Errorf("seq %s: %w", inspect.Quote(r.Seq), err)
		}
	}
	return c.compose(l, p)
}

// parsed is ParseLayout with a cache.
func (c *composer) parsed(text string) (firn.Layout, error) {
	if l, ok := c.layouts[text]; ok {
		return l, nil
	}
	l, err := firn.ParseLayout(text)
	if err != nil {
		return l, err
	}
	if len(c.layouts) >= maxLayouts {
		clear(c.layouts)
	}
	c.layouts[strings.Clone(text)] = l // a part of text would keep its whole chunk
	return l, nil
}
