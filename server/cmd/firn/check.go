package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
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
		c.onBad = c.keepBad
		began := time.Now()
		if err := c.files(cmd.Context(), args, c.add); err != nil {
			return err
		}
		r := checkReport{c.Report(layout, a.now()), c, layout, time.Since(began)}
		if asJSON {
			a.printJSON(r.json())
		} else {
			r.print()
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
	if err = c.keep(where, id); errors.Is(err, check.ErrWide) {
		return fmt.Errorf("%s has %d bits: %w", textfmt.Quote(text), 8*len(id), err), nil
	}
	c.from = as
	return nil, err
}

// keep keeps an ID and its place.
func (c *checkInput) keep(where lines.Place, id form.ID) error {
	count := c.Count()
	if err := c.Add(id); errors.Is(err, check.ErrMemory) {
		return failed("allow more with --memory "+textfmt.Size(2*c.memory),
			"more than %s IDs need more than %s of memory: %d bytes each",
			groupDigits(count), textfmt.Size(c.memory), check.BytesPerID)
	} else if err != nil {
		return err
	}
	c.places.Add(where)
	return nil
}

// keepBad remembers the first lines that are not IDs, for the report.
func (c *checkInput) keepBad(where lines.Place, err error) error {
	if len(c.badFirst) < 3 {
		c.badFirst = append(c.badFirst, where.String()+": "+textfmt.Message(err))
	}
	return nil
}

// A checkReport prints the result of a check.
type checkReport struct {
	check.Report
	input  *checkInput
	layout firn.Layout
	took   time.Duration
}

// text returns an ID as in the stream.
func (r *checkReport) text(id form.ID) string {
	if _, ok := r.input.from.Format(); !ok || r.input.from.Is(firn.Raw) || len(id) == 12 {
		return hex.EncodeToString(id)
	}
	return string(id.Append(nil, r.input.from))
}

func (r *checkReport) print() {
	st := r.input.app.style()
	var x rows
	x.add("IDs", "%s", st.bold(countText(st, r.Count)))
	if r.Duplicates == 0 {
		x.add("duplicates", "%s", st.green("0"))
	} else {
		x.add("duplicates", "%s", st.red(countText(st, r.Duplicates)))
	}
	for _, d := range r.Duplicated {
		x.add("duplicate", "%s", r.repeatText(d))
	}
	switch {
	case r.Count < 2:
	case r.Increasing:
		x.add("inversions", "0: every ID is greater than the previous one")
	default:
		x.add("inversions", "%s: IDs after a greater one; a single generator makes none", countText(st, r.Inversions))
	}
	if r.K > 0 {
		x.add("k", "%s: %s, %s, is this far from its sorted position", countText(st, r.K), r.text(r.Furthest),
			r.input.places.Of(r.Place))
	} else if r.Count > 1 {
		x.add("k", "0")
	}
	if r.Lateness > 0 {
		x.add("lateness", "%v: %s follows an ID with a time that is this much later", r.Lateness, r.text(r.Latest))
	}
	if r.Count > 0 {
		x.add("min", "%s", r.text(r.Min))
		x.add("max", "%s", r.text(r.Max))
	}
	if r.Times {
		x.add("first", "%s", inspect.Stamp(r.First, r.layout.Unit()))
		x.add("last", "%s", inspect.Stamp(r.Last, r.layout.Unit()))
		x.add("span", "%s", inspect.Span(inspect.Age(r.First, r.Last)))
	}
	if r.Foreign > 0 {
		x.add("foreign", "%s", st.red(countText(st, r.Foreign)+" IDs do not fit layout "+r.layout.String()))
		x.add("foreign", "%s: %s: %v", r.input.places.Of(r.ForeignPlace), r.text(r.FirstForeign),
			textfmt.Plain(r.ForeignError))
	}
	if r.input.bad > 0 {
		x.add("bad lines", "%s", st.red(countText(st, uint64(r.input.bad))))
		for _, text := range r.input.badFirst {
			x.add("bad line", "%s", text)
		}
	}
	x.add("read as", "%s", r.input.from)
	x.add("took", "%.2f s, %s IDs/s", r.took.Seconds(), layouts.Short(float64(r.Count)/max(r.took.Seconds(), 1e-6)))
	for _, text := range r.notes() {
		x.add("note", "%s", st.yellow(text))
	}
	x.print(r.input.app.stdout, st)
}

// places names the places of a duplicate.
func (r *checkReport) places(d check.Duplicate) (at []string) {
	for _, p := range d.Places {
		at = append(at, r.input.places.Of(p))
	}
	return at
}

// parts returns the parts of a duplicate by the layout, if it has any.
func (r *checkReport) parts(d check.Duplicate) (p firn.Parts, ok bool) {
	if r.layout.IsZero() {
		return p, false
	}
	p, err := r.layout.DecomposeBytes(d.ID)
	return p, err == nil
}

// repeatText describes a duplicate: where it occurs, and its parts.
func (r *checkReport) repeatText(d check.Duplicate) string {
	at := r.places(d)
	if d.Times > uint64(len(d.Places)) {
		at = append(at, "…")
	}
	text := fmt.Sprintf("%s %d times: %s", r.text(d.ID), d.Times, strings.Join(at, ", "))
	if p, ok := r.parts(d); ok {
		text += fmt.Sprintf("; %s node %d seq %d", inspect.Stamp(p.Time, r.layout.Unit()), p.Node, p.Seq)
	}
	return text
}

// notes says what else there is to know: above all whether the IDs are rounded,
// and which duplicates that explains.
func (r *checkReport) notes() (notes []string) {
	if r.Rounding.How != "" {
		text := fmt.Sprintf("%s of %s: %s", groupDigits(uint64(r.Rounding.IDs)), groupDigits(r.Count), r.Rounding)
		if r.Duplicates > 0 && r.Rounding.Sure {
			text += ". This makes the duplicates, not the generator"
		} else if r.Duplicates > 0 {
			text += ". Rounding would make the duplicates"
		}
		if !r.Rounding.Quiet {
			text += "; " + inspect.Unrounded
		}
		notes = append(notes, text)
	}
	if r.Small > 0 {
		notes = append(notes, inspect.SmallText(r.Small))
	}
	if r.input.missing > 0 {
		notes = append(notes, inspect.MissingText(r.input.missing))
	}
	return notes
}

// countText groups digits for people but not for programs.
func countText(st style, n uint64) string {
	if st.terminal {
		return groupDigits(n)
	}
	return strconv.FormatUint(n, 10)
}

// json returns the report for JSON.
func (r *checkReport) json() any {
	duplicated := []any{}
	for _, d := range r.Duplicated {
		v := map[string]any{"id": r.text(d.ID), "times": d.Times, "at": r.places(d)}
		if p, ok := r.parts(d); ok {
			v["time_ms"], v["node"], v["seq"] = inspect.Millis(p.Time), inspect.Number(p.Node), inspect.Number(p.Seq)
		}
		duplicated = append(duplicated, v)
	}
	v := map[string]any{
		"count": r.Count, "duplicates": r.Duplicates, "duplicated": duplicated, "inversions": r.Inversions,
		"k": r.K, "increasing": r.Increasing,
		"bad_lines": r.input.bad, "bad": append([]string{}, r.input.badFirst...),
		"from": r.input.from.String(), "seconds": r.took.Round(time.Millisecond).Seconds(),
	}
	if r.Count > 0 {
		v["min"], v["max"] = r.text(r.Min), r.text(r.Max)
	}
	if notes := r.notes(); len(notes) > 0 {
		v["missing"], v["notes"] = r.input.missing, notes
	}
	if !r.layout.IsZero() {
		v["layout"], v["foreign"], v["small"] = r.layout.String(), r.Foreign, r.Small
	}
	if r.Times {
		v["first_ms"], v["last_ms"] = inspect.Millis(r.First), inspect.Millis(r.Last)
		v["lateness_ms"] = float64(r.Lateness) / 1e6
	}
	return v
}
