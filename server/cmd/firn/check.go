package main

import (
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
	"github.com/firnid/firn/server/internal/ids/check"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/records"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

func newCheck(a *app) *cobra.Command {
	var (
		layout firn.Layout
		from   inspect.Encoding
		bits   int
		memory = uint64(1 << 30)
		csv    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "check [--layout LAYOUT] [--from FORMAT] [FILE…]",
		Short: "Check a stream of IDs for duplicates and order",
		Long: `Check reads IDs, one per line, from files or from the standard input (-, or no argument),
and reports exactly how many are duplicates and how they are ordered.

  firn next -n 1000000 | firn check

  duplicates  IDs that occurred before, with the first few and their lines
  inversions  IDs after a greater one: normal if several nodes write into one
              stream; a single generator makes none
  k           the largest distance of an ID from its sorted position; with
              --layout also the lateness, in the time of the IDs

The exit code is 1 if there is a duplicate, or a line that is not an ID or does not fit
the layout, and otherwise 0.

Check skips spaces around IDs and blank lines. With --csv COLUMN it reads that column of
a CSV file with commas: its name in the first line, or its number from 1 in a file
without names. With --from raw it reads bytes.

Check keeps all IDs in memory: 12 bytes each, 20 with more than 64 bits, up to
--memory. The default is enough for 89 million IDs of 64 bits.`,
		Example: `  firn next -n 1000000 | firn check
  firn check --layout twitter ids.txt
  firn check --csv order_id orders.csv
  psql -Atc 'select id from orders' | firn check --layout default --json
  firn check --from raw --bits 64 ids.bin`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c := checkCmd{a: a, layout: layout, asJSON: asJSON}
			switch {
			case layout.IsZero():
			case bits != 0 && layout.Bits() != bits:
				return misuse("leave --bits out", "--bits %d: IDs of layout %s have %d", bits, layout, layout.Bits())
			case layout.Bits() > check.MaxBits:
				return misuse("", "IDs of layout %s have %d bits: check reads IDs of up to %d bits", layout, layout.Bits(), check.MaxBits)
			default:
				bits = layout.Bits()
			}
			if f, ok := from.Format(); ok && f == firn.Raw {
				if csv != "" {
					return misuse("leave one of them out", "--csv reads text, but --from raw reads bytes")
				}
				if c.raw = bits / 8; c.raw == 0 {
					return misuse("--bits 64, --bits 128 or --layout", "--from raw: the size of the IDs is needed")
				}
			}
			if memory == 0 {
				return misuse("write a size such as 512MiB or 2GiB", "--memory 0: check keeps all IDs in memory")
			}
			c.from, c.bits, c.csv = from, bits, csv
			c.Checker = check.New(check.Options{Layout: layout, From: from, Bits: bits, Memory: memory})
			// Otherwise the collector would let the heap grow to twice the size of the
			// data.
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(memory) + 64<<20))
			if len(args) == 0 {
				args = []string{"-"}
				if f, ok := a.stdin.(*os.File); ok && a.styleOf(f).terminal && a.styleOf(a.stderr).terminal {
					a.note("reading IDs from the terminal; press ctrl-D to end")
				}
			}
			return c.run(cmd.Context(), args)
		},
	}
	layoutVar(cmd, &layout, "layout of the IDs, for times (default none)")
	encodingVar(cmd, &from)
	bitsVar(cmd, &bits, "size of the IDs: auto, 64 or 128; --from raw needs it")
	csvVar(cmd, &csv)
	sizeVar(cmd, &memory, "memory", "maximum memory for the IDs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// A checkCmd is a run of the command check.
type checkCmd struct {
	a *app
	*check.Checker
	layout firn.Layout
	from   inspect.Encoding
	bits   int
	csv    string
	raw    int // bytes per ID with --from raw; 0 for text
	asJSON bool

	bad      uint64 // lines that are not IDs
	badFirst []string

	parts []part
	began time.Time
}

// A part is a run of IDs on consecutive lines of one file.
type part struct {
	first uint64 // number of IDs before it in the stream
	place        // place of its first ID
}

// maxParts bounds the memory for finding the lines again.
const maxParts = 100_000

func (c *checkCmd) run(ctx context.Context, args []string) error {
	c.began = time.Now()
	in := idInput{a: c.a, csv: c.csv, from: c.from, bits: c.bits}
	read := c.file
	if c.raw > 0 {
		read = c.bytes
	}
	for _, name := range args {
		if err := read(ctx, &in, name); err != nil {
			return checkError(err)
		}
	}
	f := c.Report()
	var err error
	if c.asJSON {
		err = c.a.printJSON(c.json(f))
	} else {
		err = c.report(f)
	}
	if err != nil {
		return err
	}
	if f.Duplicates > 0 || c.bad > 0 || f.Foreign > 0 {
		return answerNo()
	}
	return nil
}

// checkError adds a hint to an error that ends a check.
func checkError(err error) error {
	var memory *check.MemoryError
	var wide *check.WideError
	var doubt *inspect.AmbiguousError
	switch {
	case errors.As(err, &memory):
		return failed(fmt.Sprintf("allow more with --memory %s", textfmt.Size(2*memory.Limit)),
			"more than %s IDs need more than %s of memory: %d bytes each", group(memory.Count), textfmt.Size(memory.Limit), memory.Each)
	case errors.As(err, &doubt):
		return misuse("--from "+doubt.Names[0], "%w", err)
	case errors.As(err, &wide):
		return misuse("", "%w", err)
	}
	return err
}

// file reads one file, or the standard input.
func (c *checkCmd) file(ctx context.Context, in *idInput, name string) error {
	last := 0 // the line of the previous ID
	return in.file(ctx, name, records.NewWriter(io.Discard), func(where place, text string, bad error) error {
		count := c.Count()
		if bad == nil {
			bad = c.AddText(text)
			if bad != nil && !errors.As(bad, new(*check.IDError)) {
				return bad
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
		return nil
	})
}

// bytes reads packed IDs; the number of an ID takes the place of its line.
func (c *checkCmd) bytes(ctx context.Context, in *idInput, name string) error {
	r, name, err := in.open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	c.parts = append(c.parts, part{c.Count(), place{name, 1}})
	return records.EachRaw(r, c.raw, func(n int, b []byte) error {
		if n&(1<<16-1) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return c.AddBytes(b)
	})
}

// where names the place of an ID in the stream.
func (c *checkCmd) where(n uint64) string {
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

func (c *checkCmd) report(f check.Report) error {
	l := c.a.styleOf(c.a.stdout)
	n := f.Count
	seconds := time.Since(c.began).Seconds()
	var r rows
	r.add("IDs", "%s", l.bold(number(l, n)))
	if f.Duplicates == 0 {
		r.add("duplicates", "%s", l.green("0"))
	} else {
		r.add("duplicates", "%s", l.red(number(l, f.Duplicates)))
	}
	shown := uint64(0)
	for _, x := range f.Duplicated {
		r.add("duplicate", "%s", c.repeatText(x))
		shown += x.Times - 1
	}
	if shown < f.Duplicates {
		r.add("duplicate", "… only the first %d are shown", len(f.Duplicated))
	}
	switch {
	case n < 2:
	case f.Increasing:
		r.add("inversions", "0: every ID is greater than the previous one")
	case f.Inversions == 0:
		r.add("inversions", "0")
	default:
		r.add("inversions", "%s: IDs after a greater one; a single generator makes none", number(l, f.Inversions))
	}
	if n > 1 {
		text := number(l, f.K)
		if f.K > 0 {
			text += fmt.Sprintf(": %s, %s, is this far from its sorted position", f.Furthest, c.where(f.Place))
		}
		r.add("k", "%s", text)
	}
	if f.Lateness > 0 {
		r.add("lateness", "%v: %s follows an ID with a time that is this much later", f.Lateness, f.Latest)
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
		r.add("foreign", "%s", l.red(number(l, f.Foreign)+" IDs do not fit layout "+c.layout.String()))
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
	return r.print(c.a.stdout, l)
}

// places names the places of a duplicate.
func (c *checkCmd) places(x check.Duplicate) (at []string) {
	for _, p := range x.Places {
		at = append(at, c.where(p))
	}
	return at
}

// repeatText describes a duplicate: where it occurs, and its parts.
func (c *checkCmd) repeatText(x check.Duplicate) string {
	at := c.places(x)
	if x.Times > uint64(len(x.Places)) {
		at = append(at, "…")
	}
	text := fmt.Sprintf("%s %d times: %s", x.ID, x.Times, strings.Join(at, ", "))
	if x.Known {
		text += fmt.Sprintf("; %s node %d seq %d", inspect.Stamp(x.Parts.Time, c.layout.Unit()), x.Parts.Node, x.Parts.Seq)
	}
	return text
}

// foreignText describes an ID that does not fit the layout, and why.
func (c *checkCmd) foreignText(x *check.ForeignID) string {
	text := c.where(x.Place) + ": " + x.ID
	if x.Err != nil {
		text += ": " + strings.TrimPrefix(x.Err.Error(), "firn: ")
	}
	return text
}

// number groups digits for people but not for programs.
func number(l style, n uint64) string {
	if l.terminal {
		return group(n)
	}
	return strconv.FormatUint(n, 10)
}

// json returns the report for JSON.
func (c *checkCmd) json(f check.Report) any {
	duplicated := []any{}
	for _, x := range f.Duplicated {
		d := map[string]any{"id": x.ID, "times": x.Times, "at": c.places(x)}
		if x.Known {
			d["time_ms"], d["node"], d["seq"] = inspect.Millis(x.Parts.Time), inspect.Number(x.Parts.Node), inspect.Number(x.Parts.Seq)
		}
		duplicated = append(duplicated, d)
	}
	v := map[string]any{
		"count": f.Count, "duplicates": f.Duplicates, "duplicated": duplicated, "inversions": f.Inversions, "k": f.K, "increasing": f.Increasing,
		"bad_lines": c.bad, "bad": append([]string{}, c.badFirst...), "from": f.From.String(), "seconds": time.Since(c.began).Round(time.Millisecond).Seconds(),
	}
	if f.Count > 0 {
		v["min"], v["max"] = f.Min, f.Max
	}
	if !c.layout.IsZero() {
		v["layout"], v["foreign"] = c.layout.String(), f.Foreign
	}
	if f.Times {
		v["first_ms"], v["last_ms"], v["lateness_ms"] = inspect.Millis(f.First), inspect.Millis(f.Last), float64(f.Lateness)/1e6
	}
	return v
}
