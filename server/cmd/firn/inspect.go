package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/inspect"
)

func newInspect(a *app) *cobra.Command {
	var (
		layout  firn.Layout
		from    inspect.Encoding
		asJSON  bool
		all     bool
		diagram = "auto"
	)
	cmd := &cobra.Command{
		Use:   "inspect [--layout LAYOUT] [--from FORMAT] ID…",
		Short: "Read IDs: their time, node, sequence and bits",
		Long: `Inspect takes IDs apart. Without --layout it tries all known layouts and shows
the likeliest reading with the reasons, and the others below it.

It knows by itself how an ID is written. Digits are decimal, hexadecimal begins
with 0x or has the whole width of 16, 24, 32 or 40 digits (where all of them
could be decimal, with a zero in front); --from says it where that is wrong.

With - it reads IDs from the standard input, one per line. With --json it
prints one object per ID, in order:

  {"layout":"default","time":"2026-11-20T22:00:00.000Z","time_ms":1795212000000,
   "node":7,"seq":3,"dec":"117383499776000003","hex":"01a107b9d0007003"}

Integers above 2^53 are strings. Without --layout there are also "from",
"score", "for", "against" and "others". A text that is no ID gives
{"error":"…"} in its place; the rest goes on, and the exit code is 1.`,
		Example: `  firn inspect 1212092628029698048
  firn inspect --layout hazelcast 1051272366497366035
  firn inspect 0190163d-8694-739b-aea5-966c26f8ad91
  firn next -n 1000 | firn inspect --layout default --json -`,
		Args: needArgs("ID", "firn inspect 1212092628029698048, or firn inspect - for lines on the standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f, ok := from.Format(); ok && f == firn.Raw {
				return misuse("firn convert --from raw --to dec - reads bytes", "--from raw: inspect reads text")
			}
			o := inspect.Options{Layout: layout, From: from}
			p := idPrinter{a: a, o: o, all: all, look: a.lookOf(a.stdout)}
			switch diagram {
			case "auto":
				p.diagram = p.look.terminal
			case "always":
				p.diagram = true
			case "never":
			default:
				return misuse("", "--diagram %q: it is auto, always or never", diagram)
			}
			out := newRecordWriter(a.stdout)
			var t tally
			var err error
			switch {
			case asJSON:
				err = inspectJSON(cmd, a, args, out, o, &t)
			default:
				var one bytes.Buffer
				err = a.records(cmd.Context(), args, out, func(where place, text string, bad error) error {
					t.all++
					one.Reset()
					if bad == nil {
						bad = p.print(&one, text, t.all > 1)
					}
					if bad != nil {
						t.bad++
						return a.badRecord(out, where, bad)
					}
					_, err := out.Write(one.Bytes())
					return err
				})
			}
			if err != nil {
				return err
			}
			return t.result(a, "IDs")
		},
	}
	layoutVar(cmd, &layout, "layout of the IDs (default all that are known)")
	encodingVar(cmd, &from)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	cmd.Flags().BoolVar(&all, "all", false, "show also readings that are hardly possible")
	cmd.Flags().StringVar(&diagram, "diagram", diagram, "draw the bits: auto (on a terminal), always or never")
	complete(cmd, "diagram", func() []string { return []string{"auto", "always", "never"} })
	return cmd
}

// badRecord says on stderr what is wrong with one record. Output so far goes
// first, so that the two stay in order on a terminal.
func (a *app) badRecord(out *recordWriter, where place, err error) error {
	if e := out.Flush(); e != nil {
		return e
	}
	a.complain(where.String(), err)
	return nil
}

// inspectJSON writes an object per ID. Where the layout is known, that goes
// fast: nothing is guessed.
func inspectJSON(cmd *cobra.Command, a *app, args []string, out *recordWriter, o inspect.Options, t *tally) error {
	var fast *inspect.Reader
	if !o.Layout.IsZero() {
		fast = inspect.NewReader(o.Layout, o.From)
	}
	var buf []byte
	return a.records(cmd.Context(), args, out, func(_ place, text string, err error) error {
		t.all++
		buf = buf[:0]
		switch {
		case err != nil:
		case fast != nil:
			buf, err = fast.AppendJSON(buf, text)
		default:
			o.Now = a.now()
			var r inspect.Result
			if r, err = inspect.Read(text, o); err == nil {
				buf = r.AppendJSON(buf)
			}
		}
		if err != nil {
			t.bad++
			buf = appendError(buf, err)
		}
		_, err = out.Write(append(buf, '\n'))
		return err
	})
}

// appendError appends the record of what could not be read.
func appendError(b []byte, err error) []byte {
	b = append(b, `{"error":`...)
	return append(inspect.AppendString(b, strings.TrimPrefix(err.Error(), "firn: ")), '}')
}

// An idPrinter shows IDs to people.
type idPrinter struct {
	a       *app
	o       inspect.Options
	look    look
	diagram bool
	all     bool
}

// print shows one ID; apart asks for an empty line before it.
func (p *idPrinter) print(w io.Writer, text string, apart bool) error {
	p.o.Now = p.a.now()
	result, err := inspect.Read(text, p.o)
	if err != nil {
		return err
	}
	if apart {
		fmt.Fprintln(w)
	}
	best := &result.Readings[0]
	var r rows
	r.add("id", "%s", p.look.bold(text))
	r.add("layout", "%s", p.title(best))
	if p.o.From.IsAuto() {
		r.add("read as", "%s, %d bits", best.Encoding, best.Bits())
	}
	p.addParts(&r, best)
	p.addReasons(&r, best)
	p.addTexts(&r, best)
	r.print(w, p.look)
	if p.diagram {
		p.draw(w, best)
	}
	p.others(w, result.Readings[1:])
	return nil
}

// title is the layout, and how sure that is where it was guessed.
func (p *idPrinter) title(r *inspect.Reading) string {
	name := p.look.bold(r.Name)
	if !p.o.Layout.IsZero() {
		return name
	}
	switch {
	case !r.Plausible:
		return name + p.look.yellow("  hardly possible, like all others")
	case r.Score > 0.95:
		return name + p.look.green("  "+inspect.Percent(r.Score))
	}
	return name + p.look.yellow("  "+inspect.Percent(r.Score))
}

func (p *idPrinter) addParts(r *rows, x *inspect.Reading) {
	if !x.HasParts {
		return
	}
	seconds := inspect.Age(x.Time, p.o.Now)
	age := inspect.Span(seconds) + " ago"
	if seconds < 0 {
		age = p.look.yellow(inspect.Span(-seconds) + " in the future")
	}
	r.add("time", "%s", p.look.bold(x.Stamp()))
	r.add("local", "%s", x.Time.Local().Format("2006-01-02 15:04:05.000 -0700 MST"))
	r.add("age", "%s", age)
	r.add("unix ms", "%s", strings.Trim(string(inspect.AppendMillis(nil, x.Time)), `"`))
	if x.Layout.IsZero() || x.Layout.NodeBits() > 0 {
		node := fmt.Sprint(x.Node)
		if x.Layout.IsZero() || x.Layout.NodeBits() == 48 {
			node += "  " + inspect.MAC(x.Node)
		}
		var parts []string
		for _, part := range x.NodeParts {
			parts = append(parts, fmt.Sprintf("%s %d", part.Name, part.Value))
		}
		if len(parts) > 0 {
			node += "  " + strings.Join(parts, ", ")
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
	for _, reason := range x.For {
		r.add("for", "%s", reason)
	}
	for _, reason := range x.Against {
		r.add("against", "%s", p.look.yellow(reason))
	}
}

// addTexts adds the ID in all encodings.
func (p *idPrinter) addTexts(r *rows, x *inspect.Reading) {
	texts := []firn.Format{firn.Decimal, firn.Hex, firn.Binary, firn.Base32, firn.Base36, firn.Base58, firn.Base62}
	id, is64 := x.ID()
	id128, is128 := x.ID128()
	switch {
	case is64:
		for _, f := range texts {
			if f == firn.Binary {
				r.add("bin", "%s", appendGroups(nil, firn.Binary.Append(nil, id), 8))
				continue
			}
			r.add(f.String(), "%s", f.Append(nil, id))
		}
		if id > math.MaxInt64 {
			r.add("signed", "%d", int64(id))
		}
	case is128:
		for _, f := range append([]firn.Format{firn.UUID}, texts...) {
			if f == firn.Binary {
				continue // wider than a terminal, and nobody reads it
			}
			r.add(f.String(), "%s", f.Append128(nil, id128))
		}
	default:
		r.add("dec", "%s", x.Dec())
		r.add("hex", "%s", x.Hex())
	}
}

// draw shows the bits with the values in their cells, where the terminal is
// wide enough, and as a list where it is not.
func (p *idPrinter) draw(w io.Writer, x *inspect.Reading) {
	if x.Layout.IsZero() {
		p.list(w, x)
		return
	}
	box := x.Layout.Diagram(func(piece firn.Piece) string {
		v := piece.Value(x.Bytes)
		switch piece.Field {
		case "zero":
			return "0"
		case "const":
			return fmt.Sprintf("=%d", v)
		case "rand":
			return "rand"
		}
		text := fmt.Sprintf("%s %d", piece.Field, v)
		if piece.Reversed {
			text = fmt.Sprintf("%s~ %d", piece.Field, v)
		}
		return text
	})
	if p.look.width > 0 && boxWidth(box) > p.look.width {
		p.list(w, x)
		return
	}
	fmt.Fprintf(w, "\n%s", box)
}

func boxWidth(box string) int {
	line, _, _ := strings.Cut(box, "\n")
	return len(line) + 1
}

func (p *idPrinter) list(w io.Writer, x *inspect.Reading) {
	t := table{head: []string{"bits", "field", "value"}, right: map[int]bool{0: true, 2: true}}
	for _, piece := range x.Pieces {
		value := fmt.Sprint(piece.Value)
		if piece.Width > 64 {
			value = "…"
		}
		t.add(fmt.Sprintf("%d..%d", piece.Pos+piece.Width-1, piece.Pos), piece.Field, value)
	}
	fmt.Fprintln(w)
	t.print(w, p.look)
}

// reason says in short why a reading is not the best.
func (p *idPrinter) reason(x *inspect.Reading) string {
	var reasons []string
	if age := inspect.Age(x.Time, p.o.Now); x.HasParts && age >= 0 {
		reasons = append(reasons, inspect.Span(age)+" ago")
	} else if x.HasParts {
		reasons = append(reasons, inspect.Span(-age)+" in the future")
	}
	for _, reason := range x.Against {
		if !strings.HasPrefix(reason, "the time ") || !strings.Contains(reason, x.Stamp()) {
			return strings.Join(append(reasons, reason), "; ")
		}
	}
	return strings.Join(reasons, "; ")
}

// others shows the other readings, a line each.
func (p *idPrinter) others(w io.Writer, readings []inspect.Reading) {
	t := table{head: []string{"other", "", "time", ""}, right: map[int]bool{1: true}}
	hidden := 0
	for i := range readings {
		x := &readings[i]
		if !p.all && (x.Score < 0.001 || !x.Plausible) {
			hidden++
			continue
		}
		name := x.Name
		if x.Encoding != readings[0].Encoding {
			name += " in " + x.Encoding.String()
		}
		stamp := "none"
		if x.HasParts {
			stamp = x.Stamp()
		}
		t.add(name, inspect.Percent(x.Score), stamp, p.reason(x))
	}
	if len(t.rows) > 0 {
		fmt.Fprintln(w)
		t.print(w, p.look)
	}
	if hidden > 0 {
		text := fmt.Sprintf("%d more readings are hardly possible; --all shows them", hidden)
		if hidden == 1 {
			text = "1 more reading is hardly possible; --all shows it"
		}
		fmt.Fprintf(w, "\n%s\n", p.look.dim(text))
	}
}
