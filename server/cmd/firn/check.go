package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/check"
	"github.com/firnid/firn/server/inspect"
	"github.com/firnid/firn/server/textfmt"
)

func newCheck(a *app) *cobra.Command {
	var (
		layout firn.Layout
		from   inspect.Encoding
		size   = "auto"
		memory = uint64(1 << 30)
		csv    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "check [--layout LAYOUT] [--from FORMAT] [FILE…]",
		Short: "Look for duplicates in a stream of IDs, and at its order",
		Long: `Check reads IDs, one per line, or as bytes with --from raw, from files or from
the standard input (-, or no argument), and reports exactly:

  duplicates  IDs that came before already, with the first few and their lines
  inversions  IDs that came after a greater one: normal where several nodes
              write into one stream, but one generator alone makes none
  k           the largest distance of an ID from its sorted position; with
              --layout also how late an ID came, in time

The exit code is 0 where there are no duplicates, and 1 where there are, or
where a line is no ID, or none of the layout.

Spaces, quotes, commas at the end, blank lines, NULL, a header and the frames of
psql and mysql tables are skipped. With --csv COLUMN files are CSV, or tables with
tabs, ; or |, and the IDs are in that column.

IDs that strictly increase take no memory, and a temporary file only where they
are very many. Others take some 10 bytes each (18 with 128 bits) from the first
inversion on, up to --memory.`,
		Example: `  firn next -n 1000000 | firn check
  firn check --layout twitter ids.txt
  firn check --csv order_id orders.csv
  psql -Atc 'select id from orders' | firn check --layout default --json
  firn check --from raw --bits 64 ids.bin`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c := checking{a: a, layout: layout, asJSON: asJSON}
			bits := 0
			switch size {
			case "auto":
				if !layout.IsZero() {
					bits = layout.Bits()
				}
			case "64", "128":
				bits, _ = strconv.Atoi(size)
				if !layout.IsZero() && layout.Bits() != bits {
					return misuse("leave --bits out", "--bits %d: IDs of layout %s have %d", bits, layout, layout.Bits())
				}
			default:
				return misuse("", "--bits %q: it is auto, 64 or 128", size)
			}
			if !layout.IsZero() && layout.Bits() > check.MaxBits {
				return misuse("", "IDs of layout %s have %d bits: check reads those of up to %d", layout, layout.Bits(), check.MaxBits)
			}
			if f, ok := from.Format(); ok && f == firn.Raw {
				if csv != "" {
					return misuse("leave one of them out", "--csv is for text, and --from raw reads bytes")
				}
				if c.raw = bits / 8; c.raw == 0 {
					return misuse("--bits 64, --bits 128 or --layout", "--from raw: bytes do not say where an ID ends")
				}
			}
			if memory == 0 {
				return misuse("write a size such as 512MiB or 2GiB", "--memory 0: nothing can be sorted in no memory")
			}
			c.from, c.bits, c.csv = from, bits, csv
			c.Checker = check.New(check.Options{Layout: layout, From: from, Bits: bits, Memory: memory})
			// The collector would else let the heap grow to twice of what is kept.
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(memory) + 64<<20))
			if len(args) == 0 {
				args = []string{"-"}
				if f, ok := a.stdin.(*os.File); ok && a.lookOf(f).terminal && a.lookOf(a.stderr).terminal {
					a.note("reading IDs from the terminal; end with ctrl-D")
				}
			}
			err := c.run(cmd.Context(), args)
			return errors.Join(err, c.Close())
		},
	}
	layoutVar(cmd, &layout, "layout of the IDs, for times (default none)")
	encodingVar(cmd, &from)
	cmd.Flags().StringVar(&size, "bits", size, "`SIZE` of the IDs: auto, 64 or 128; --from raw needs it")
	csvVar(cmd, &csv)
	sizeVar(cmd, &memory, "memory", "most memory that sorting may take")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	complete(cmd, "bits", func() []string { return []string{"auto", "64", "128"} })
	return cmd
}

// A checking is a run of the command check.
type checking struct {
	a *app
	*check.Checker
	layout firn.Layout
	from   inspect.Encoding
	bits   int
	csv    string
	raw    int // bytes of an ID that is not text; 0 for text
	asJSON bool

	bad      uint64 // lines that are no IDs
	badFirst []string

	parts   []part
	began   time.Time
	shown   time.Time // when progress was last shown
	display bool
}

// A part is IDs that stand on consecutive lines of one file.
type part struct {
	first uint64 // how many IDs came before it in the stream
	place        // of its first ID
}

// maxParts bounds what is kept to find the lines again.
const maxParts = 100_000

func (c *checking) run(ctx context.Context, args []string) error {
	c.began = time.Now()
	c.shown = c.began
	c.display = c.a.lookOf(c.a.stderr).terminal && c.a.getenv("TERM") != "dumb"
	for _, name := range args {
		if err := c.file(ctx, name); err != nil {
			c.clear()
			return checkError(err)
		}
	}
	f, err := c.Report(ctx, func(done uint64) { c.progress("sorting", done) })
	c.clear()
	if err != nil {
		return checkError(err)
	}
	out := bufio.NewWriter(c.a.stdout)
	if c.asJSON {
		out.Write(append(c.appendJSON(nil, f), '\n'))
	} else {
		c.report(out, f)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if f.Duplicates > 0 || c.bad > 0 || f.Foreign > 0 {
		return answerNo()
	}
	return nil
}

// checkError is an error that ends a check, with its hint.
func checkError(err error) error {
	var memory *check.MemoryError
	var file *check.FileError
	var wide *check.WideError
	var doubt *inspect.AmbiguousError
	switch {
	case errors.As(err, &memory):
		return failed(fmt.Sprintf("--memory %s allows twice as much; IDs that are sorted before take none", textfmt.Size(2*memory.Limit)),
			"sorting needs more than %s: %s of the %s IDs so far came after the first that was not in order",
			textfmt.AboutSize(memory.Limit), group(memory.Unordered), group(memory.Count))
	case errors.As(err, &file):
		return failed("set TMPDIR to a directory that can be written, with enough room", "%w", err)
	case errors.As(err, &doubt):
		return misuse("--from "+doubt.Names[0], "%w", err)
	case errors.As(err, &wide):
		return misuse("", "%w", err)
	}
	return err
}

// file reads one file, or the standard input.
func (c *checking) file(ctx context.Context, name string) error {
	var r io.Reader = c.a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return failed("", "%w", err)
		}
		defer f.Close()
		r = f
	} else {
		name = ""
	}
	if c.raw > 0 {
		return c.bytes(ctx, r, name)
	}
	in := idInput{a: c.a, csv: c.csv, from: c.from, bits: c.bits}
	last := 0 // the line of the previous ID
	return in.lines(ctx, r, name, newRecordWriter(io.Discard), func(where place, text string, bad error) error {
		count := c.Count()
		if bad == nil {
			err := c.AddText(text)
			var no *check.IDError
			if err != nil && !errors.As(err, &no) {
				return err
			}
			if no != nil {
				bad = no
			}
		}
		if bad != nil {
			c.bad++
			if len(c.badFirst) < 3 {
				c.badFirst = append(c.badFirst, where.String()+": "+strings.TrimPrefix(bad.Error(), "firn: "))
			}
			return nil
		}
		if (last == 0 || where.line != last+1) && len(c.parts) < maxParts {
			c.parts = append(c.parts, part{count, where})
		}
		last = where.line
		c.tick(count)
		return nil
	})
}

// bytes reads IDs that follow each other as bytes; an ID's number takes the
// place of its line.
func (c *checking) bytes(ctx context.Context, r io.Reader, name string) error {
	c.parts = append(c.parts, part{c.Count(), place{name, 1}})
	return eachRaw(r, c.raw, func(n int, b []byte) error {
		if n&(1<<16-1) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.AddBytes(b); err != nil {
			return err
		}
		c.tick(uint64(n))
		return nil
	})
}

// where names the place of an ID in the stream.
func (c *checking) where(n uint64) string {
	i := len(c.parts) - 1
	for i >= 0 && c.parts[i].first > n {
		i--
	}
	if i < 0 || len(c.parts) == maxParts {
		return fmt.Sprintf("ID %d", n+1)
	}
	p := c.parts[i]
	return place{p.file, p.line + int(n-p.first)}.String()
}

// tick shows the progress now and then.
func (c *checking) tick(n uint64) {
	if n&(1<<18-1) == 0 {
		c.progress("", 0)
	}
}

// progress shows on a terminal how far it is, twice a second.
func (c *checking) progress(what string, done uint64) {
	if !c.display || time.Since(c.shown) < 500*time.Millisecond {
		return
	}
	c.shown = time.Now()
	text := fmt.Sprintf("%s IDs, %s/s", group(c.Count()), count(float64(c.Count())/time.Since(c.began).Seconds()))
	if what != "" {
		text = fmt.Sprintf("%s %.0f %%", what, 100*float64(done)/float64(max(c.Count(), 1)))
	} else if c.Inversions() > 0 {
		text += fmt.Sprintf(", %s inversions, %s in use", group(c.Inversions()), textfmt.AboutSize(c.Memory()))
	}
	fmt.Fprintf(c.a.stderr, "\r\x1b[K%s", text)
}

// clear takes the progress away.
func (c *checking) clear() {
	if c.display {
		fmt.Fprint(c.a.stderr, "\r\x1b[K")
	}
}

func (c *checking) report(w io.Writer, f check.Report) {
	l := c.a.lookOf(c.a.stdout)
	n := f.Count
	seconds := time.Since(c.began).Seconds()
	var r rows
	r.add("IDs", "%s", l.bold(number(l, n)))
	if f.Duplicates == 0 {
		r.add("duplicates", "%s", l.green("0"))
	} else {
		r.add("duplicates", "%s", l.red(number(l, f.Duplicates)))
	}
	for _, x := range f.Duplicated {
		r.add("duplicate", "%s", c.repeatText(x))
	}
	if shown := uint64(len(f.Duplicated)); f.Duplicates > 0 && c.moreRepeats(f) {
		r.add("duplicate", "… the first %d IDs are shown", shown)
	}
	switch {
	case n < 2:
	case f.Increasing:
		r.add("inversions", "0: every ID is greater than the one before")
	case f.Inversions == 0:
		r.add("inversions", "0")
	default:
		r.add("inversions", "%s: IDs that came after a greater one; one generator alone makes none", number(l, f.Inversions))
	}
	if n > 1 {
		text := number(l, f.K)
		if f.K > 0 {
			text += fmt.Sprintf(": %s, %s, stands so far from its sorted position", f.Furthest, c.where(f.Place))
		}
		r.add("k", "%s", text)
	}
	if f.Lateness > 0 {
		r.add("lateness", "%v: %s came so long after a greater one, in its own time", f.Lateness, f.Latest)
	}
	if n > 0 {
		r.add("min", "%s", f.Min)
		r.add("max", "%s", f.Max)
	}
	if f.Times {
		r.add("first", "%s", inspect.Stamp(f.First, c.layout.Unit()))
		r.add("last", "%s", inspect.Stamp(f.Last, c.layout.Unit()))
		span := inspect.Span(-inspect.Age(f.Last, f.First))
		if d := f.Last.Sub(f.First); d < time.Hour {
			span = d.String()
		}
		r.add("span", "%s", span)
	}
	if f.Foreign > 0 {
		r.add("foreign", "%s", l.red(number(l, f.Foreign)+" IDs are not of layout "+c.layout.String()))
		r.add("foreign", "%s", c.foreignText(f.FirstForeign))
	}
	if c.bad > 0 {
		r.add("bad lines", "%s", l.red(number(l, c.bad)))
		for _, text := range c.badFirst {
			r.add("bad line", "%s", text)
		}
	}
	r.add("read as", "%s", f.From)
	r.add("took", "%.2f s, %s IDs/s", seconds, count(float64(n)/max(seconds, 1e-6)))
	r.print(w, l)
}

// moreRepeats reports whether there are repeated IDs that are not shown.
func (c *checking) moreRepeats(f check.Report) bool {
	shown := uint64(0)
	for _, x := range f.Duplicated {
		shown += x.Times - 1
	}
	return shown < f.Duplicates
}

// repeatText says where a repeated ID stands, and what is in it.
func (c *checking) repeatText(x check.Duplicate) string {
	var at []string
	for _, p := range x.Places {
		at = append(at, c.where(p))
	}
	if x.Times > uint64(len(x.Places)) {
		at = append(at, "…")
	}
	text := fmt.Sprintf("%s %d times: %s", x.ID, x.Times, strings.Join(at, ", "))
	if x.Known {
		text += fmt.Sprintf("; %s node %d seq %d", inspect.Stamp(x.Parts.Time, c.layout.Unit()), x.Parts.Node, x.Parts.Seq)
	}
	return text
}

// foreignText says where an ID stands that is not of the layout, and why.
func (c *checking) foreignText(x *check.ForeignID) string {
	text := c.where(x.Place) + ": " + x.ID
	if x.Err != nil {
		text += ": " + strings.TrimPrefix(x.Err.Error(), "firn: ")
	}
	return text
}

// number groups digits where people read them, and not where programs do.
func number(l look, n uint64) string {
	if l.terminal {
		return group(n)
	}
	return strconv.FormatUint(n, 10)
}

func (c *checking) appendJSON(b []byte, f check.Report) []byte {
	num := func(key string, n uint64) {
		b = append(inspect.AppendString(b, key), ':')
		b = append(inspect.AppendNumber(b, n), ',')
	}
	text := func(key, s string) {
		b = append(inspect.AppendString(b, key), ':')
		b = append(inspect.AppendString(b, s), ',')
	}
	b = append(b, '{')
	num("count", f.Count)
	num("duplicates", f.Duplicates)
	b = append(b, `"duplicated":[`...)
	for i, x := range f.Duplicated {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		text("id", x.ID)
		num("times", x.Times)
		if x.Known {
			b = append(inspect.AppendMillis(append(b, `"time_ms":`...), x.Parts.Time), ',')
			num("node", x.Parts.Node)
			num("seq", x.Parts.Seq)
		}
		b = append(b, `"at":[`...)
		for j, p := range x.Places {
			if j > 0 {
				b = append(b, ',')
			}
			b = inspect.AppendString(b, c.where(p))
		}
		b = append(b, "]}"...)
	}
	b = append(b, "],"...)
	num("inversions", f.Inversions)
	num("k", f.K)
	b = fmt.Appendf(b, `"increasing":%t,`, f.Increasing)
	if f.Count > 0 {
		text("min", f.Min)
		text("max", f.Max)
	}
	if !c.layout.IsZero() {
		text("layout", c.layout.String())
		num("foreign", f.Foreign)
	}
	if f.Times {
		b = append(inspect.AppendMillis(append(b, `"first_ms":`...), f.First), ',')
		b = append(inspect.AppendMillis(append(b, `"last_ms":`...), f.Last), ',')
		b = fmt.Appendf(b, `"lateness_ms":%g,`, float64(f.Lateness)/1e6)
	}
	num("bad_lines", c.bad)
	b = append(b, `"bad":[`...)
	for i, s := range c.badFirst {
		if i > 0 {
			b = append(b, ',')
		}
		b = inspect.AppendString(b, s)
	}
	b = append(b, "],"...)
	text("from", f.From.String())
	return fmt.Appendf(b, `"seconds":%.3f}`, time.Since(c.began).Seconds())
}
