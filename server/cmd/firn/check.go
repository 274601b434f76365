package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/check"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/layouts"
	"github.com/firnid/firn/server/internal/ids/lines"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

func newCheck(a *app) *cobra.Command {
	c := newCheckInput(a)
	var layout firn.Layout
	var asJSON bool
	cmd := command("check", nil, func(cmd *cobra.Command, args []string) error {
		switch {
		case layout.IsZero():
		case c.bits != 0 && layout.Bits() != c.bits:
			return misuse("leave --bits out", "--bits %d: IDs of layout %s have %d", c.bits, layout, layout.Bits())
		case layout.Bits() > 128:
			return misuse("", "IDs of layout %s have %d bits: check reads IDs of up to 128 bits", layout, layout.Bits())
		default:
			c.bits = layout.Bits()
		}
		if c.memory == 0 {
			return misuse("write a size such as 512MiB or 2GiB", "--memory 0: check keeps all IDs in memory")
		}
		if len(args) == 0 {
			args = []string{"-"}
			if isTerminal(a.stdin) && isTerminal(a.stderr) {
				a.note("reading IDs from the terminal; press ctrl-D to end")
			}
		}
		// Otherwise the collector would let the heap grow to twice the size of
		// the data.
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(c.memory) + 64<<20))
		c.onBad = func(where lines.Place, err error) error {
			if len(c.badFirst) < 3 {
				c.badFirst = append(c.badFirst, where.String()+": "+textfmt.Message(err))
			}
			return nil
		}
		began := time.Now()
		if err := c.files(cmd.Context(), args, c.add); err != nil {
			return err
		}
		r := c.Report(layout, a.now())
		from := check.Stream{From: c.from, Layout: layout, Places: c.places, Bad: c.bad, FirstBad: c.badFirst,
			Missing: c.missing, Took: time.Since(began)}
		if asJSON {
			a.printJSON(r.JSON(&from))
		} else {
			c.print(r, &from)
		}
		if r.Duplicates > 0 || c.bad > 0 || r.Foreign > 0 {
			return answerNo()
		}
		return nil
	})
	layoutVar(cmd, &layout, firn.ParseLayout, "layout of the IDs, for times (default none)")
	c.vars(cmd)
	bitsVar(cmd, &c.bits, "size of the IDs: auto, 64 or 128; --from raw needs it")
	jsonVar(cmd, &asJSON)
	return cmd
}

// A checkInput reads files of IDs for a check.
type checkInput struct {
	idInput
	check.Checker
	memory   uint64   // in bytes
	badFirst []string // lines that are not IDs
	places   lines.Places
}

func newCheckInput(a *app) *checkInput {
	return &checkInput{idInput: idInput{app: a, skipsMissing: true}, memory: 1 << 30}
}

// vars adds --from, --csv and --memory.
func (c *checkInput) vars(cmd *cobra.Command) {
	fromVar(cmd, &c.from)
	csvVar(cmd, &c.csv)
	sizeVar(cmd, &c.memory, "memory", "maximum memory for the IDs")
}

// files calls do for every ID in files.
func (c *checkInput) files(ctx context.Context, names []string, do idHandler) error {
	c.Max, c.out = c.memory/check.BytesPerID, lines.NewWriter(io.Discard)
	for _, name := range names {
		if err := c.file(ctx, name, do); err != nil {
			return err
		}
	}
	return nil
}

// add adds the next ID. The first one determines the form of all.
func (c *checkInput) add(where lines.Place, text string) (bad, err error) {
	id, as, err := c.from.Decode(text, c.bits)
	if doubt, ok := errors.AsType[*form.AmbiguousError](err); ok {
		return nil, misuse("--from "+doubt.Names[0], "%w", err)
	}
	if err != nil {
		return err, nil
	}
	switch err = c.Add(id); {
	case errors.Is(err, check.ErrWide):
		return fmt.Errorf("%s has %d bits: %w", textfmt.Quote(text), 8*len(id), err), nil
	case err != nil:
		return nil, failed("allow more with --memory "+textfmt.Size(2*c.memory),
			"more than %s IDs need more than %s of memory: %d bytes each",
			groupDigits(c.Count()), textfmt.Size(c.memory), check.BytesPerID)
	}
	c.from = as
	c.places.Add(where)
	return nil, nil
}

// print prints the report of a stream.
func (c *checkInput) print(r check.Report, s *check.Stream) {
	st := c.app.style()
	var x rows
	x.add("IDs", "%s", st.bold(countText(st, r.Count)))
	if r.Duplicates == 0 {
		x.add("duplicates", "%s", st.green("0"))
	} else {
		x.add("duplicates", "%s", st.red(countText(st, r.Duplicates)))
	}
	for _, d := range r.Duplicated {
		x.add("duplicate", "%s", s.Describe(d))
	}
	switch {
	case r.Count < 2:
	case r.Increasing:
		x.add("inversions", "0: every ID is greater than the previous one")
	default:
		x.add("inversions", "%s: IDs after a greater one; a single generator makes none", countText(st, r.Inversions))
	}
	if r.K > 0 {
		x.add("k", "%s: %s, %s, is this far from its sorted position", countText(st, r.K), s.Text(r.Furthest),
			s.Places.Of(r.Place))
	} else if r.Count > 1 {
		x.add("k", "0")
	}
	if r.Lateness > 0 {
		x.add("lateness", "%v: %s follows an ID with a time that is this much later", r.Lateness, s.Text(r.Latest))
	}
	if r.Count > 0 {
		x.add("min", "%s", s.Text(r.Min))
		x.add("max", "%s", s.Text(r.Max))
	}
	if r.Times {
		x.add("first", "%s", inspect.Stamp(r.First, s.Layout.Unit()))
		x.add("last", "%s", inspect.Stamp(r.Last, s.Layout.Unit()))
		x.add("span", "%s", inspect.Span(inspect.Age(r.First, r.Last)))
	}
	if r.Foreign > 0 {
		x.add("foreign", "%s", st.red(countText(st, r.Foreign)+" IDs do not fit layout "+s.Layout.String()))
		x.add("foreign", "%s: %s: %v", s.Places.Of(r.ForeignPlace), s.Text(r.FirstForeign),
			textfmt.Plain(r.ForeignError))
	}
	if s.Bad > 0 {
		x.add("bad lines", "%s", st.red(countText(st, uint64(s.Bad))))
		for _, text := range s.FirstBad {
			x.add("bad line", "%s", text)
		}
	}
	x.add("read as", "%s", s.From)
	x.add("took", "%.2f s, %s IDs/s", s.Took.Seconds(), layouts.Short(float64(r.Count)/max(s.Took.Seconds(), 1e-6)))
	for _, text := range r.Notes(s.Missing) {
		x.add("note", "%s", st.yellow(text))
	}
	x.print(c.app.stdout, st)
}

// countText groups digits for people but not for programs.
func countText(st style, n uint64) string {
	if st.terminal {
		return groupDigits(n)
	}
	return strconv.FormatUint(n, 10)
}
