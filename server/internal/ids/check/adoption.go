package check

import (
	"fmt"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// An Adoption is what firn adopt knows besides a Report: a sequencer is to
// continue where another generator has made IDs.
type Adoption struct {
	Layout     firn.Layout // of the IDs; zero if they fit none that is known
	Guessed    bool        // nobody has named the Layout
	Generators uint64      // how many have made the IDs; 0 if unknown
	Stopped    bool        // the other generator makes no more IDs
	Create     bool        // the sequencer is to be created at once
	Now        time.Time
}

// A Refusal is why there is no sequencer for IDs, and what to do.
type Refusal struct {
	Err  error
	Hint string
}

func (e *Refusal) Error() string { return e.Err.Error() }

func (e *Refusal) Unwrap() error { return e.Err }

func refusal(hint, format string, a ...any) error { return &Refusal{fmt.Errorf(format, a...), hint} }

// nameLayout is the hint if the layout is wrong or unknown.
const nameLayout = "name the layout, as in --layout bits=time:41.node:10.seq:12,epoch=2020-01-01T00:00:00Z; " +
	"see docs/moving.md"

// Check returns a Refusal if the IDs of a Report, or their layout, are no base
// for a sequencer. The notes are what may be wrong, also without a Refusal.
func (a *Adoption) Check(r *Report) (notes []string, err error) {
	ahead := -inspect.Age(r.Last, a.Now)
	if err := a.refuse(r, ahead); err != nil {
		return nil, err
	}
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if r.Rounding.How != "" {
		note("the IDs: %s", r.Rounding)
	}
	if r.Duplicates > 0 {
		note("the other generator has made %d IDs twice; see firn check", r.Duplicates)
	}
	if ahead > a.Layout.DefaultMaxAhead().Seconds() && !a.Stopped {
		note("by this layout the highest ID is %s ahead of this clock; if that is wrong, the layout has "+
			"another epoch or other bits", inspect.Span(ahead))
	}
	if a.Guessed && -ahead > 24*60*60 {
		note("by this layout the highest ID was made %s ago; if that is wrong, name the layout and its epoch "+
			"with --layout", inspect.Span(-ahead))
		if a.Create {
			err = refusal("confirm it: --layout "+a.Layout.String(),
				"nothing was created: the layout is a guess, and the IDs are old")
		}
	}
	return notes, err
}

// refuse is Check without its notes. By the layout, the highest ID is so many
// seconds ahead of the clock.
func (a *Adoption) refuse(r *Report, ahead float64) error {
	n := len(r.Nodes)
	switch {
	case r.Rounding.Sure:
		hint := inspect.Unrounded
		if a.Guessed {
			hint += "; if these are exact, another layout made them: name it with --layout"
		}
		return refusal(hint, "%d of %d IDs are %s: they read as other node IDs and times", r.Rounding.IDs, r.Count,
			r.Rounding)
	case 100*r.Duplicates > r.Count:
		cause := ""
		if r.Rounding.How != "" {
			cause = "; " + r.Rounding.String()
		}
		return refusal("read each ID once, from the table that it is the key of, and as text: rounding makes "+
			"duplicates too. See firn check",
			"%d of %d IDs are duplicates%s", r.Duplicates, r.Count, cause)
	case a.Layout.IsZero():
		return refusal(nameLayout, "the IDs fit no known layout")
	case a.Layout.CheckGenerator() != nil:
		return a.Layout.CheckGenerator()
	case r.AllSmall && !a.Stopped:
		return refusal("read the column with the IDs; if this one had a counter until now, stop it and add --stopped",
			"all IDs are small numbers, such as those of a counter, and not of layout %s", a.Layout)
	case r.Foreign > 0:
		return refusal("name the right layout with --layout, or leave these IDs out if another generator made them",
			"IDs that do not fit layout %s: %d, first %s: %w",
			a.Layout, r.Foreign, r.FirstForeign.Append(nil, form.Of(firn.Decimal)), textfmt.Plain(r.ForeignError))
	case !a.Now.Before(a.Layout.End()):
		return refusal("use a layout with more time bits, which makes greater IDs: see docs/moving.md",
			"the time of layout %s ended at %s: no ID is left", a.Layout, textfmt.Stamp(a.Layout.End()))
	case a.Guessed && ahead > a.Layout.DefaultMaxAhead().Seconds():
		return refusal(nameLayout, "the layout is a guess, and wrong: by %s the highest ID is %s ahead of this clock",
			a.Layout, inspect.Span(ahead))
	case a.Generators > 0 && a.Generators != uint64(n):
		return refusal(nameLayout,
			"the IDs have %s by layout %s, not %d: the layout is wrong, or they are not the IDs of all generators",
			textfmt.Count(n, "node ID"), a.Layout, a.Generators)
	case a.Guessed && a.Generators == 0:
		return refusal(fmt.Sprintf("if %s made these IDs, confirm it with --generators %d; otherwise name their "+
			"layout with --layout, see docs/moving.md", textfmt.Count(n, "generator"), n),
			"the layout is a guess: by %s, the IDs have %s: %s", a.Layout, textfmt.Count(n, "node ID"),
			NodeList(r.Nodes))
	}
	return nil
}

// Plan returns the node IDs of the sequencer, nil for all, and the time that
// its IDs must lie above. asked are node IDs to use; nil means free ones.
func (a *Adoption) Plan(r *Report, asked *grant.NodeRange) (nodes *grant.NodeRange, floor time.Time, err error) {
	switch {
	case a.Stopped:
		return nil, r.Floor(a.Layout), nil
	case asked != nil:
		if met := r.UsedIn(asked.Lo, asked.Hi); len(met) > 0 {
			err = refusal("leave out --nodes for free ones", "node IDs of %v are in use: %s", asked, NodeList(met))
		}
		return asked, floor, err
	case r.NodesUncertain(a.Layout):
		return nil, floor, refusal(inspect.Unrounded+"; if these are exact, name node IDs that are free with --nodes",
			"the IDs: %s: by layout %s the lowest bits are the node ID, so which ones are in use is not certain",
			r.Rounding, a.Layout)
	}
	lo, hi, ok := r.Free(a.Layout)
	if !ok {
		err = refusal("stop the other generator, and use --stopped; or read only the IDs of the last days, if it no "+
			"longer uses some node IDs",
			"no node ID is free: the sequencer and the other generator cannot both run")
	}
	return &grant.NodeRange{Lo: lo, Hi: hi}, floor, err
}

// NodeList lists the first few of some node IDs.
func NodeList(nodes []uint64) string {
	return textfmt.FirstFew(nodes, func(node uint64) string { return fmt.Sprint(node) })
}
