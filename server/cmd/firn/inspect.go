package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/layouts"
	"github.com/firnid/firn/server/internal/ids/lines"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// An inspectCmd has the flags of the command inspect.
type inspectCmd struct {
	inspect.Options // the layout, zero if none is given; the form; the time

	idInput
	asJSON, summary, unlikely bool
	veiled                    veilFlags

	style style
}

func newInspect(a *app) *cobra.Command {
	c := inspectCmd{idInput: idInput{app: a}}
	cmd := command("inspect", wantArgs("the ID", 1, -1), func(cmd *cobra.Command, args []string) error {
		switch {
		case c.From.Is(firn.Raw):
			return misuse("firn convert --from raw --to dec - reads bytes", "--from raw: inspect reads text")
		case c.veiled.file != "" || c.From.IsVeiled():
			v, err := c.veiled.veil(a, c.Layout)
			if err != nil {
				return err
			}
			c.From = form.VeiledBy(v)
		case cmd.Flags().Changed("sequencer"):
			return misuse("", "--sequencer needs --veil-key-file")
		}
		return c.run(cmd.Context(), args)
	})
	layoutVar(cmd, &c.Layout, firn.ParseLayout, "layout of the IDs (default all known layouts)")
	fromVar(cmd, &c.From)
	c.veiled.flags(cmd)
	csvVar(cmd, &c.csv)
	jsonVar(cmd, &c.asJSON)
	cmd.Flags().BoolVar(&c.summary, "summary", false, "summarize all IDs: layout, time span, nodes, rate, anomalies")
	cmd.Flags().BoolVar(&c.unlikely, "all", false, "also show unlikely readings")
	cmd.MarkFlagsMutuallyExclusive("summary", "all")
	return cmd
}

// run shows the IDs, each or all together.
func (c *inspectCmd) run(ctx context.Context, args []string) error {
	c.style = c.app.style()
	c.out, c.from = lines.NewWriter(c.app.stdout.Writer), c.From
	if bits := c.Layout.Bits(); bits == 64 || bits == 128 {
		c.bits = bits
	}
	if c.summary {
		return c.summarize(ctx, args)
	}
	if c.asJSON {
		c.onBad = c.badJSON
	}
	to := json.NewEncoder(c.out)
	var one bytes.Buffer
	first := true // of a column
	err := c.each(ctx, args, func(where lines.Place, text string) (bad, err error) {
		c.Now = c.app.now()
		r, bad := inspect.Read(text, c.Options)
		if bad != nil {
			return bad, nil
		}
		one.Reset()
		inColumn := where.Line > 0 && !c.unlikely
		switch {
		case c.asJSON && !c.Layout.IsZero():
			return nil, to.Encode(r.Readings[0].Parts())
		case c.asJSON:
			if inColumn {
				r.DropUnlikely()
			}
			return nil, to.Encode(r.JSON())
		case inColumn:
			printLine(&one, &r, first, !c.Layout.IsZero())
			first = false
		default:
			c.print(&one, &r, c.all > 1)
		}
		_, err = c.out.Write(one.Bytes())
		return nil, err
	})
	if err != nil {
		return err
	}
	return c.result(c.app, "IDs")
}

// printLine shows an ID of a column to people, on one line below the names of
// the columns. asked says that the layout was given.
func printLine(w io.Writer, r *inspect.Result, first, asked bool) {
	line := func(id, layout, likelihood, parts string) {
		text := fmt.Sprintf("%-20s  %-12s  ", id, layout)
		if !asked {
			text += fmt.Sprintf("%-10s  ", likelihood)
		}
		fmt.Fprintln(w, strings.TrimRight(text+parts, " "))
	}
	if first {
		line("id", "layout", "likelihood", "time                      node  seq")
	}
	x := &r.Readings[0]
	switch {
	case !asked && !r.Known():
		line(r.Text, "unknown", "", r.Other)
	case x.HasParts:
		line(r.Text, x.Name, x.Likelihood().String(), fmt.Sprintf("%s  %-4d  %d", x.Stamp(), x.Node, x.Seq))
	default:
		line(r.Text, x.Name, x.Likelihood().String(), "")
	}
}

// print shows one ID, after an empty line if apart is set.
func (c *inspectCmd) print(w io.Writer, result *inspect.Result, apart bool) {
	if apart {
		fmt.Fprintln(w)
	}
	best, others := &result.Readings[0], result.Readings[1:]
	known := result.Known()
	var r rows
	r.add("id", "%s", c.style.bold(result.Text))
	switch {
	case !known:
		r.add("layout", "%s", c.style.yellow("no known layout"))
		others = result.Readings
	case !c.Layout.IsZero():
		r.add("layout", "%s", c.style.bold(best.Name))
	default:
		r.add("layout", "%s  %s", c.style.bold(best.Name), c.likelihood(best))
	}
	if c.From.IsAuto() {
		r.add("read as", "%s, %d bits", best.Form, best.Bits())
	}
	if known {
		c.addParts(&r, best)
		if c.Layout.IsZero() {
			for _, reason := range best.For() {
				r.add("for", "%s", reason)
			}
			for _, reason := range best.Against() {
				r.add("against", "%s", c.style.yellow(reason))
			}
		}
	} else if result.Other != "" {
		r.add("note", "%s", result.Other)
	}
	c.addTexts(&r, best)
	r.print(w, c.style)
	if known && !best.Layout.IsZero() {
		c.draw(w, best)
	}
	c.others(w, best, others)
}

func (c *inspectCmd) likelihood(r *inspect.Reading) terminalText {
	if l := r.Likelihood(); l != inspect.Likely {
		return c.style.yellow(l.String())
	}
	return c.style.green(inspect.Likely.String())
}

func (c *inspectCmd) addParts(r *rows, x *inspect.Reading) {
	if !x.HasParts {
		return
	}
	age := terminalText(x.Ago())
	if x.Time.After(c.Now) {
		age = c.style.yellow(x.Ago())
	}
	r.add("time", "%s", c.style.bold(x.Stamp()))
	r.add("local", "%s", x.Time.Local().Format("2006-01-02 15:04:05.000 -0700 MST"))
	r.add("age", "%s", age)
	r.add("unix ms", "%v", inspect.Millis(x.Time))
	if x.Layout.IsZero() || x.Layout.NodeBits() > 0 {
		node := fmt.Sprint(x.Node)
		if x.Layout.IsZero() || x.Layout.NodeBits() == 48 {
			node += "  " + inspect.MAC(x.Node)
		}
		if parts := x.NodeText(); parts != "" {
			node += "  " + parts
		}
		r.add("node", "%s", node)
	}
	if x.Layout.IsZero() || x.Layout.SeqBits() > 0 {
		r.add("sequence", "%d", x.Seq)
	}
}

// addTexts adds the ID in all encodings.
func (c *inspectCmd) addTexts(r *rows, x *inspect.Reading) {
	for _, text := range x.Texts() {
		switch {
		case text.Name != firn.Binary.String():
			r.add(text.Name, "%s", text.Text)
		case x.Bits() == 64: // 128 are wider than a terminal
			bin := text.Text
			for i := 56; i > 0; i -= 8 {
				bin = bin[:i] + " " + bin[i:]
			}
			r.add("bin", "%s", bin)
		}
	}
	if id, err := strconv.ParseUint(x.Dec(), 10, 64); x.Bits() == 64 && err == nil && id > math.MaxInt64 {
		r.add("signed", "%d", int64(id))
	}
}

// draw shows the bits with their values in a box, if the terminal is wide
// enough.
func (c *inspectCmd) draw(w io.Writer, x *inspect.Reading) {
	box := layouts.Box(x.Layout, func(p firn.Piece) string {
		if p.Field == firn.FieldRand {
			return ""
		}
		return strconv.FormatUint(p.Value(x.Bytes), 10)
	})
	if c.style.fits(box) {
		fmt.Fprintf(w, "\n%s", box)
	}
}

// others shows the other readings, one per line.
func (c *inspectCmd) others(w io.Writer, best *inspect.Reading, readings []inspect.Reading) {
	t := table{head: []string{"other", "", "time", ""}}
	hidden := 0
	for i := range readings {
		x := &readings[i]
		if !c.unlikely && x.Likelihood() == inspect.Unlikely {
			hidden++
			continue
		}
		name := x.Name
		if x.Form != best.Form {
			name += " in " + x.Form.String()
		}
		stamp := "none"
		if x.HasParts {
			stamp = x.Stamp()
		}
		t.add(name, x.Likelihood().String(), stamp, x.Reason())
	}
	if len(t.rows) > 0 {
		fmt.Fprintln(w)
		t.print(w, c.style)
	}
	if hidden > 0 {
		fmt.Fprintf(w, "\n%s\n", c.style.dim(textfmt.Count(hidden, "unlikely reading")+" not shown; --all shows more"))
	}
}

// summarize reports on all IDs together.
func (c *inspectCmd) summarize(ctx context.Context, args []string) error {
	s := inspect.NewSummary(c.Options, c.app.now())
	c.skipsMissing = true
	err := c.each(ctx, args, func(_ lines.Place, text string) (bad, err error) { return s.Add(text), nil })
	if err != nil {
		return err
	}
	if r := s.Report(); c.asJSON {
		c.app.printJSON(r.JSON(c.bad, c.missing))
	} else {
		c.printSummary(r)
	}
	return c.result(c.app, "IDs")
}

func (c *inspectCmd) printSummary(r inspect.Report) {
	st := c.style
	var x rows
	x.add("IDs", "%s", st.bold(countText(st, uint64(r.Count))))
	switch {
	case r.Count == 0:
	case !r.Known:
		x.add("layout", "%s", st.yellow("no known layout"))
	default:
		x.add("layout", "%s  fits %s of %s", st.bold(r.Name), countText(st, uint64(r.Fits)),
			countText(st, uint64(r.Count-r.Small)))
	}
	if r.HasTime {
		x.add("first", "%s", inspect.Stamp(r.First, r.Unit()))
		x.add("last", "%s", inspect.Stamp(r.Last, r.Unit()))
		x.add("span", "%s", inspect.Span(inspect.Age(r.First, r.Last)))
		if r.Rate > 0 {
			x.add("rate", "%.3g IDs per second", r.Rate)
		}
		more := ""
		if r.NodesMore {
			more = "more than "
		}
		x.add("nodes", "%s%s", more, countText(st, uint64(r.Nodes)))
	}
	list := r.Anomalies(c.bad)
	for _, text := range list {
		x.add("anomaly", "%s", st.yellow(text))
	}
	if len(list) == 0 && r.Count > 0 {
		x.add("anomalies", "%s", st.green("none"))
	}
	for _, text := range r.Notes(c.missing) {
		x.add("note", "%s", text)
	}
	x.print(c.app.stdout, st)
}
