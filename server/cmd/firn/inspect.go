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
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

const inspectHelp = `Inspect takes IDs apart: it shows their time, node, sequence and bits.

  firn inspect 1212092628029698048

Without --layout it tries all known layouts and shows the likeliest reading with reasons,
followed by the others. A reading is likely, possible or unlikely: several layouts can have
the same bits. An ID that is more probably a random number has no known layout.

Inspect detects the encoding. Digits are decimal; hexadecimal begins with 0x or has the
full width of 16, 24, 32 or 40 digits (with a leading zero, if all of them could be
decimal). Name the encoding with --from if that is wrong. Veiled IDs need
--veil-key-file, and the --sequencer and --layout that they were made with.

For files with a column of IDs, and for the standard input (-), it prints one line per ID.
` + columnHelp + `

With --json it prints one object per ID, in order:

  {"layout":"default","time":"2026-11-20T22:00:00.000Z","time_ms":1795212000000,
   "node":7,"seq":3,"dec":"117383499776000003","hex":"01a107b9d0007003"}

Integers above 2^53 are strings. Without --layout there are also "from", "score",
"likelihood", "for", "against", "known" and "others": for columns the readings that are at
least possible, with --all every reading. For a text that is not an ID it prints
{"error":"…"}, continues, and exits with 1.`

func newInspect(a *app) *cobra.Command {
	var (
		layout  firn.Layout
		from    form.Form
		asJSON  bool
		all     bool
		summary bool
		csv     string
		diagram = "auto"
		veiled  veilFlags
	)
	cmd := &cobra.Command{
		Use:   "inspect [--layout LAYOUT] [--from FORMAT] {ID|FILE|-}…",
		Short: "Show the time, node, sequence and bits of IDs",
		Long:  inspectHelp,
		Example: `  firn inspect --layout hazelcast 1051272366497366035
  firn inspect --summary --csv order_id orders.csv
  firn inspect 0190163d-8694-739b-aea5-966c26f8ad91
  firn next -n 1000 | firn inspect --layout default --json -`,
		Args: takes("the ID", 1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if from.Is(firn.Raw) {
				return misuse("firn convert --from raw --to dec - reads bytes", "--from raw: inspect reads text")
			}
			if veiled.file != "" || from.IsVeiled() {
				v, err := veiled.veil(a, layout)
				if err != nil {
					return err
				}
				from = form.VeiledBy(v)
			} else if cmd.Flags().Changed("sequencer") {
				return misuse("", "--sequencer needs --veil-key-file")
			}
			o := inspect.Options{Layout: layout, From: from}
			p := idPrinter{o: o, all: all, style: a.style()}
			p.diagram = drawsDiagram(diagram, p.style)
			in := idInput{a: a, out: newRecordWriter(a.stdout.Writer), csv: csv, from: from}
			if bits := layout.Bits(); bits == 64 || bits == 128 {
				in.bits = bits
			}
			if summary {
				return inspectSummary(cmd.Context(), &in, args, o, asJSON)
			}
			if asJSON {
				in.onBad = in.badJSON
			}
			to := json.NewEncoder(in.out)
			var one bytes.Buffer
			first := true // of a column
			err := in.each(cmd.Context(), args, func(where place, text string) (bad, err error) {
				o.Now = a.now()
				r, bad := inspect.Read(text, o)
				if bad != nil {
					return bad, nil
				}
				one.Reset()
				switch {
				case asJSON && !layout.IsZero():
					return nil, to.Encode(r.Readings[0].Parts())
				case asJSON:
					if where.line > 0 && !all {
						r.DropUnlikely()
					}
					return nil, to.Encode(r.JSON())
				case where.line > 0 && !all && diagram != "always":
					printLine(&one, &r, first, !layout.IsZero())
					first = false
				default:
					p.print(&one, &r, o.Now, in.all > 1)
				}
				_, err = in.out.Write(one.Bytes())
				return nil, err
			})
			if err != nil {
				return err
			}
			return in.result(a, "IDs")
		},
	}
	layoutVar(cmd, &layout, firn.ParseLayout, "layout of the IDs (default all known layouts)")
	encodingVar(cmd, &from)
	veiled.flags(cmd)
	csvVar(cmd, &csv)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	cmd.Flags().BoolVar(&summary, "summary", false, "summarize all IDs: layout, time span, nodes, rate, anomalies")
	cmd.Flags().BoolVar(&all, "all", false, "also show unlikely readings")
	diagramVar(cmd, &diagram)
	cmd.MarkFlagsMutuallyExclusive("summary", "all")
	cmd.MarkFlagsMutuallyExclusive("summary", "diagram")
	cmd.MarkFlagsMutuallyExclusive("json", "diagram")
	return cmd
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
		line(r.Text, "unknown", "", "")
	case x.HasParts:
		line(r.Text, x.Name, x.Likelihood().String(), fmt.Sprintf("%s  %-4d  %d", x.Stamp(), x.Node, x.Seq))
	default:
		line(r.Text, x.Name, x.Likelihood().String(), "")
	}
}

// An idPrinter shows IDs to people.
type idPrinter struct {
	o       inspect.Options
	style   style
	diagram bool
	all     bool
}

// print shows one ID, after an empty line if apart is set.
func (p *idPrinter) print(w io.Writer, result *inspect.Result, now time.Time, apart bool) {
	if apart {
		fmt.Fprintln(w)
	}
	best, others := &result.Readings[0], result.Readings[1:]
	known := result.Known()
	var r rows
	r.add("id", "%s", p.style.bold(result.Text))
	switch {
	case !known:
		r.add("layout", "%s", p.style.yellow("no known layout"))
		others = result.Readings
	case !p.o.Layout.IsZero():
		r.add("layout", "%s", p.style.bold(best.Name))
	default:
		r.add("layout", "%s  %s", p.style.bold(best.Name), p.likelihood(best))
	}
	if p.o.From.IsAuto() {
		r.add("read as", "%s, %d bits", best.Form, best.Bits())
	}
	if known {
		p.addParts(&r, best, now)
		p.addReasons(&r, best)
	} else if result.Other != "" {
		r.add("note", "%s", result.Other)
	}
	p.addTexts(&r, best)
	r.print(w, p.style)
	if known && p.diagram && !best.Layout.IsZero() {
		p.draw(w, best)
	}
	p.others(w, best, others)
}

func (p *idPrinter) likelihood(r *inspect.Reading) terminalText {
	if l := r.Likelihood(); l != inspect.Likely {
		return p.style.yellow(l.String())
	}
	return p.style.green(inspect.Likely.String())
}

func (p *idPrinter) addParts(r *rows, x *inspect.Reading, now time.Time) {
	if !x.HasParts {
		return
	}
	age := terminalText(x.Ago())
	if x.Time.After(now) {
		age = p.style.yellow(x.Ago())
	}
	r.add("time", "%s", p.style.bold(x.Stamp()))
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

func (p *idPrinter) addReasons(r *rows, x *inspect.Reading) {
	if !p.o.Layout.IsZero() {
		return
	}
	for _, reason := range x.For() {
		r.add("for", "%s", reason)
	}
	for _, reason := range x.Against() {
		r.add("against", "%s", p.style.yellow(reason))
	}
}

// addTexts adds the ID in all encodings.
func (p *idPrinter) addTexts(r *rows, x *inspect.Reading) {
	for _, text := range x.Texts() {
		switch {
		case text.Name != firn.Binary.String():
			r.add(text.Name, "%s", text.Text)
		case x.Bits() == 64: // 128 are wider than a terminal
			r.add("bin", "%s", appendGroups(nil, []byte(text.Text), 8))
		}
	}
	if id, err := strconv.ParseUint(x.Dec(), 10, 64); x.Bits() == 64 && err == nil && id > math.MaxInt64 {
		r.add("signed", "%d", int64(id))
	}
}

// draw shows the bits with their values in a box, if the terminal is wide
// enough.
func (p *idPrinter) draw(w io.Writer, x *inspect.Reading) {
	box := x.Layout.Diagram(func(piece firn.Piece) string {
		v := piece.Value(x.Bytes)
		switch {
		case piece.Field == "zero":
			return "0"
		case piece.Field == "const":
			return fmt.Sprintf("=%d", v)
		case piece.Field == "rand":
			return "rand"
		case piece.Reversed:
			return fmt.Sprintf("%s~ %d", piece.Field, v)
		}
		return fmt.Sprintf("%s %d", piece.Field, v)
	})
	if p.style.fits(box) {
		fmt.Fprintf(w, "\n%s", box)
	}
}

// others shows the other readings, one per line.
func (p *idPrinter) others(w io.Writer, best *inspect.Reading, readings []inspect.Reading) {
	t := table{head: []string{"other", "", "time", ""}}
	hidden := 0
	for i := range readings {
		x := &readings[i]
		if !p.all && x.Likelihood() == inspect.Unlikely {
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
		t.print(w, p.style)
	}
	if hidden > 0 {
		fmt.Fprintf(w, "\n%s\n", p.style.dim(countOf(hidden, "unlikely reading")+" not shown; --all shows more"))
	}
}

// inspectSummary reports on all IDs together.
func inspectSummary(ctx context.Context, in *idInput, args []string, o inspect.Options, asJSON bool) error {
	s := inspect.NewSummary(o, in.a.now())
	err := in.each(ctx, args, func(_ place, text string) (bad, err error) { return s.Add(text), nil })
	if err != nil {
		return err
	}
	if r := s.Report(); asJSON {
		in.a.printJSON(summaryJSON(r, in.tally))
	} else {
		printSummary(in.a, r, in.tally)
	}
	return in.result(in.a, "IDs")
}

// anomalies describes the anomalies of a column of IDs.
func anomalies(r inspect.Report, bad int) (list []string) {
	add := func(n int, what string) {
		if n > 0 {
			list = append(list, fmt.Sprintf(what, groupDigits(uint64(n))))
		}
	}
	add(bad, "not IDs: %s")
	add(r.Rounded, "rounded by a floating-point number, without their last digits: %s")
	add(r.Repeats, "equal to the previous ID: %s (firn check finds all duplicates)")
	if r.Known {
		add(r.Count-r.Fits, "not of this layout: %s")
		add(r.Future, "in the future: %s")
		add(r.Late, "earlier than the previous ID: %s (normal for several nodes, or an unsorted column)")
	}
	return list
}

// rateOf returns the mean number of IDs per second; ok is false if there is no
// time span.
func rateOf(r inspect.Report) (perSecond float64, ok bool) {
	seconds := inspect.Age(r.First, r.Last)
	if !r.HasTime || seconds <= 0 {
		return 0, false
	}
	return float64(r.Fits) / seconds, true
}

func printSummary(a *app, r inspect.Report, t tally) {
	st := a.style()
	var x rows
	x.add("IDs", "%s", st.bold(countText(st, uint64(r.Count))))
	switch {
	case r.Count == 0:
	case !r.Known:
		x.add("layout", "%s", st.yellow("no known layout"))
	default:
		x.add("layout", "%s  fits %s of %s", st.bold(r.Name), countText(st, uint64(r.Fits)), countText(st, uint64(r.Count)))
	}
	if r.HasTime {
		x.add("first", "%s", inspect.Stamp(r.First, r.Unit()))
		x.add("last", "%s", inspect.Stamp(r.Last, r.Unit()))
		x.add("span", "%s", inspect.Span(inspect.Age(r.First, r.Last)))
		if perSecond, ok := rateOf(r); ok {
			x.add("rate", "%.3g IDs per second", perSecond)
		}
		more := ""
		if r.NodesMore {
			more = "more than "
		}
		x.add("nodes", "%s%s", more, countText(st, uint64(r.Nodes)))
	}
	list := anomalies(r, t.bad)
	for _, text := range list {
		x.add("anomaly", "%s", st.yellow(text))
	}
	if len(list) == 0 && r.Count > 0 {
		x.add("anomalies", "%s", st.green("none"))
	}
	x.print(a.stdout, st)
}

// summaryJSON returns the summary for JSON.
func summaryJSON(r inspect.Report, t tally) any {
	v := map[string]any{"count": r.Count, "bad": t.bad, "rounded": r.Rounded, "repeats": r.Repeats, "known": r.Known, "anomalies": append([]string{}, anomalies(r, t.bad)...)}
	if r.Known {
		v["layout"], v["fits"] = r.Name, r.Fits
	}
	if r.HasTime {
		v["first_ms"], v["last_ms"] = inspect.Millis(r.First), inspect.Millis(r.Last)
		v["nodes"], v["late"], v["future"] = r.Nodes, r.Late, r.Future
		if perSecond, ok := rateOf(r); ok {
			v["rate"] = perSecond
		}
	}
	return v
}
