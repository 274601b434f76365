package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/ids/check"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/lines"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// An adoptCmd has the flags of the command adopt.
type adoptCmd struct {
	*checkInput
	name       string
	layout     firn.Layout
	nodes      *grant.NodeRange
	generators uint64 // the number of generators that made the IDs; 0: unknown
	stopped    bool
	apply      bool
	shadow     bool
	guessed    bool // no flag names the layout
	store      string
}

func newAdopt(a *app) *cobra.Command {
	c := adoptCmd{checkInput: newCheckInput(a)}
	first := func(cmd *cobra.Command, args []string) error { return oneName(cmd, args[:min(len(args), 1)]) }
	cmd := command("adopt", first, func(cmd *cobra.Command, args []string) error {
		c.name, args = args[0], args[1:]
		excluded := len(args) > 0 || c.apply || c.stopped || c.nodes != nil || c.csv != "" || c.generators > 0 ||
			!c.layout.IsZero()
		switch {
		case c.shadow && excluded:
			return misuse("", "--shadow reads one ID per line from the standard input, and creates nothing")
		case c.shadow:
			return a.withStore(cmd.Context(), c.store, false, func(s grant.Store) error { return c.runShadow(cmd.Context(), s) })
		case len(args) == 0:
			args = []string{"-"}
		}
		return c.run(cmd.Context(), args)
	})
	layoutVar(cmd, &c.layout, firn.ParseLayout,
		"layout of the IDs (default the one that they fit best, to be confirmed)")
	c.vars(cmd)
	cmd.Flags().Uint64Var(&c.generators, "generators", 0,
		"number of generators that made the IDs, to confirm a guessed layout")
	nodesVar(cmd, &c.nodes, "node IDs of the sequencer (default the largest free half, quarter, …)")
	cmd.Flags().BoolVar(&c.stopped, "stopped", false,
		"the other generator has stopped: use all node IDs, above the highest ID")
	cmd.Flags().BoolVar(&c.apply, "apply", false, "create the sequencer")
	cmd.Flags().BoolVar(&c.shadow, "shadow", false,
		"compare a stream of the other generator's IDs with those of the sequencer")
	storeVar(cmd, &c.store)
	cmd.MarkFlagsMutuallyExclusive("nodes", "stopped")
	return cmd
}

// run reads the IDs, and prints or creates the sequencer.
func (c *adoptCmd) run(ctx context.Context, files []string) error {
	report, err := c.read(ctx, files)
	if err != nil {
		return err
	}
	c.print(report)
	if err := c.refuseUnfit(report); err != nil {
		return err
	}
	nodes, floor, err := c.plan(report)
	if err != nil {
		return err
	}
	command := fmt.Sprintf("firn sequencer create %s --layout %s", c.name, c.layout)
	if nodes != nil {
		command += fmt.Sprintf(" --nodes %d..%d", nodes.Lo, nodes.Hi)
		c.app.note("keep the other generator off the node IDs %d..%d", nodes.Lo, nodes.Hi)
	}
	if !floor.IsZero() {
		command += " --floor " + floor.Format(time.RFC3339Nano)
		if floor.After(c.app.now()) {
			c.app.note("the highest ID is ahead of this clock: the sequencer makes none before %s", textfmt.Stamp(floor))
		}
	}
	if !c.apply {
		fmt.Fprintln(c.app.stdout, command)
		return nil
	}
	return c.app.withStore(ctx, c.store, true, func(s grant.Store) error {
		config := grant.DefaultConfig(s, c.layout, nil)
		config.Nodes = nodes
		info, err := grant.Create(asOperator(ctx), s, c.name, config, &grant.CreateOptions{Now: c.app.now, Floor: floor})
		c.app.audit(ctx, s, "create", c.name, err)
		if err != nil {
			return err
		}
		c.app.printInfo(info, false)
		return nil
	})
}

// refuseUnfit refuses IDs and layouts that are no base for a plan.
func (c *adoptCmd) refuseUnfit(r check.Report) error {
	n := len(r.Nodes)
	now := c.app.now()
	ahead := -inspect.Age(r.Last, now)
	layouts := "name the layout, as in --layout bits=time:41.node:10.seq:12,epoch=2020-01-01T00:00:00Z; see docs/moving.md"
	cause := ""
	if r.Rounding.How != "" {
		cause = "; " + r.Rounding.String()
	}
	switch {
	case r.Rounding.Sure:
		hint := inspect.Unrounded
		if c.guessed {
			hint += "; if these are exact, another layout made them: name it with --layout"
		}
		return refused(hint, "%d of %d IDs are %s: they read as other node IDs and times", r.Rounding.IDs, r.Count,
			r.Rounding)
	case 100*r.Duplicates > r.Count:
		return refused("read each ID once, from the table that it is the key of, and as text: rounding makes "+
			"duplicates too. See firn check",
			"%d of %d IDs are duplicates%s", r.Duplicates, r.Count, cause)
	case c.layout.IsZero():
		return refused(layouts, "the IDs fit no known layout")
	case c.layout.CheckGenerator() != nil:
		return c.layout.CheckGenerator()
	case r.AllSmall && !c.stopped:
		return refused("read the column with the IDs; if this one had a counter until now, stop it and add --stopped",
			"all IDs are small numbers, such as those of a counter, and not of layout %s", c.layout)
	case r.Foreign > 0:
		return refused("name the right layout with --layout, or leave these IDs out if another generator made them",
			"IDs that do not fit layout %s: %d, first %s: %w",
			c.layout, r.Foreign, r.FirstForeign.Append(nil, form.Of(firn.Decimal)), textfmt.Plain(r.ForeignError))
	case !now.Before(c.layout.End()):
		return refused("use a layout with more time bits, which makes greater IDs: see docs/moving.md",
			"the time of layout %s ended at %s: no ID is left", c.layout, textfmt.Stamp(c.layout.End()))
	case c.guessed && ahead > c.layout.DefaultMaxAhead().Seconds():
		return refused(layouts, "the layout is a guess, and wrong: by %s the highest ID is %s ahead of this clock",
			c.layout, inspect.Span(ahead))
	case c.generators > 0 && c.generators != uint64(n):
		return refused(layouts,
			"the IDs have %s by layout %s, not %d: the layout is wrong, or they are not the IDs of all generators",
			countOf(n, "node ID"), c.layout, c.generators)
	case c.guessed && c.generators == 0:
		return refused(fmt.Sprintf("if %s made these IDs, confirm it with --generators %d; otherwise name their "+
			"layout with --layout, see docs/moving.md", countOf(n, "generator"), n),
			"the layout is a guess: by %s, the IDs have %s: %s", c.layout, countOf(n, "node ID"), firstNodes(r.Nodes))
	}
	if r.Rounding.How != "" {
		c.app.note("the IDs: %s", r.Rounding)
	}
	if r.Duplicates > 0 {
		c.app.note("the other generator has made %d IDs twice; see firn check", r.Duplicates)
	}
	if ahead > c.layout.DefaultMaxAhead().Seconds() && !c.stopped {
		c.app.note("by this layout the highest ID is %s ahead of this clock; if that is wrong, the layout has "+
			"another epoch or other bits", inspect.Span(ahead))
	}
	if c.guessed && -ahead > 24*60*60 {
		c.app.note("by this layout the highest ID was made %s ago; if that is wrong, name the layout and "+
			"its epoch with --layout", inspect.Span(-ahead))
		if c.apply {
			return refused("confirm it: --layout "+c.layout.String(),
				"nothing was created: the layout is a guess, and the IDs are old")
		}
	}
	return nil
}

// adoptSample is how many IDs decide about the layout.
const adoptSample = 10_000

// read reads the IDs, and guesses the layout if none is named.
func (c *adoptCmd) read(ctx context.Context, files []string) (report check.Report, err error) {
	if c.from.Is(firn.Raw) && c.layout.IsZero() {
		return report, misuse("name their layout with --layout", "--from raw: the size of the IDs is needed")
	}
	summary := inspect.NewSummary(inspect.Options{From: c.from}, c.app.now())
	c.bits = c.layout.Bits()
	err = c.files(ctx, files, func(where lines.Place, text string) (bad, err error) {
		if c.layout.IsZero() && summary.Judged() < adoptSample {
			if bad = summary.Add(text); bad != nil {
				return bad, nil
			}
		}
		return c.add(where, text)
	})
	switch {
	case err != nil:
		return report, err
	case c.all == 0:
		return report, misuse("", "there is no ID to read")
	case c.bad > 0:
		return report, c.result(c.app, "IDs")
	}
	if c.guessed = c.layout.IsZero(); c.guessed {
		c.layout = summary.Report().Layout
	}
	return c.Report(c.layout, c.app.now()), nil
}

func (c *adoptCmd) print(r check.Report) {
	st := c.app.style()
	var x rows
	x.add("IDs", "%s", countText(st, r.Count))
	switch {
	case c.layout.IsZero():
		x.add("layout", "%s", st.yellow("no known layout"))
	case c.guessed && c.generators == 0:
		x.add("layout", "%s  %s", st.bold(c.layout.String()), st.yellow("a guess"))
	default:
		x.add("layout", "%s", st.bold(c.layout.String()))
	}
	if r.Small > 0 {
		x.add("note", "%s", inspect.SmallText(r.Small))
	}
	if c.missing > 0 {
		x.add("note", "%s", inspect.MissingText(c.missing))
	}
	if r.Foreign > 0 {
		x.add("foreign", "%s", st.red(countText(st, r.Foreign)+" IDs do not fit"))
	}
	x.add("duplicates", "%s", countText(st, r.Duplicates))
	if r.Times {
		x.add("first", "%s", textfmt.Stamp(r.First))
		x.add("last", "%s", textfmt.Stamp(r.Last))
		x.add("nodes", "%s of %s in use: %s", countText(st, uint64(len(r.Nodes))),
			countNodes(c.layout, func(n uint64) string { return countText(st, n) }), firstNodes(r.Nodes))
	}
	x.print(c.app.stdout, st)
}

func firstNodes(nodes []uint64) string {
	return firstFew(nodes, func(node uint64) string { return fmt.Sprint(node) })
}

// plan returns the node IDs of the sequencer, nil for all, and the time that
// its IDs must lie above.
func (c *adoptCmd) plan(r check.Report) (nodes *grant.NodeRange, floor time.Time, err error) {
	switch {
	case c.stopped:
		return nil, r.Floor(c.layout), nil
	case c.nodes != nil:
		if err := c.nodes.Check(c.layout); err != nil {
			return nil, floor, misuse("", "%w", err)
		}
		if met := r.UsedIn(c.nodes.Lo, c.nodes.Hi); len(met) > 0 {
			return nil, floor, refused("leave out --nodes for free ones", "node IDs of %v are in use: %s", c.nodes,
				firstNodes(met))
		}
		return c.nodes, floor, nil
	}
	if r.NodesUncertain(c.layout) {
		return nil, floor, refused(inspect.Unrounded+"; if these are exact, name node IDs that are free with --nodes",
			"the IDs: %s: by layout %s the lowest bits are the node ID, so which ones are in use is not certain",
			r.Rounding, c.layout)
	}
	lo, hi, ok := r.Free(c.layout)
	if !ok {
		return nil, floor,
			refused("stop the other generator, and use --stopped; or read only the IDs of the last days, if it no "+
				"longer uses some node IDs",
				"no node ID is free: the sequencer and the other generator cannot both run")
	}
	return &grant.NodeRange{Lo: lo, Hi: hi}, floor, nil
}

// runShadow compares the other generator's IDs with those of the sequencer.
func (c *adoptCmd) runShadow(ctx context.Context, s grant.Store) error {
	info, err := grant.Lookup(ctx, s, c.name)
	if err != nil {
		return err
	}
	config := info.Config
	if config.Layout.Bits() != 64 {
		return misuse("", "IDs of sequencer %s have %d bits: --shadow compares those of 64", c.name,
			config.Layout.Bits())
	}
	return withSequencer(ctx, c.app, s, c.name,
		&sequencer.Options{Layout: config.Layout, MustExist: true, Now: c.app.clock}, sequencer.Open,
		func(q *sequencer.Sequencer) error {
			return c.compare(ctx, q, check.NewShadow(info, c.from), config.Layout)
		})
}

// compare takes an ID of the sequencer for each of the other generator.
func (c *adoptCmd) compare(ctx context.Context, q *sequencer.Sequencer, shadow *check.Shadow, l firn.Layout) error {
	contacts := 0
	meets := func(text string, contact check.Contact) {
		if contact == check.None {
			return
		}
		if contacts++; contacts <= maxComplaints {
			fmt.Fprintf(c.app.stdout, "contact  %s  %s\n", text, contact)
		}
	}
	c.bits, c.out = 64, lines.NewWriter(io.Discard)
	digits := inspect.NewDigits(c.app.now())
	err := c.file(ctx, "-", func(_ lines.Place, text string) (bad, err error) {
		old, contact, bad := shadow.Old(text)
		if bad != nil {
			return bad, nil
		}
		meets(text, contact)
		digits.Add(old)
		if n := c.all; n >= 8 && n&(n-1) == 0 {
			if err := roundedStream(digits, l); err != nil {
				return nil, err
			}
		}
		id, err := q.Next(ctx)
		if err != nil {
			return nil, err
		}
		meets(id.String(), shadow.New(id))
		return nil, nil
	})
	fmt.Fprintf(c.app.stdout, "%d IDs of the other generator, %d of sequencer %s, %d contacts\n", c.all-c.bad,
		c.all-c.bad, c.name, contacts)
	if err = cmp.Or(err, roundedStream(digits, l)); err != nil {
		return err
	}
	if contacts > 0 {
		return answerNo()
	}
	if r := digits.Rounding(l, nil); r.How != "" {
		c.app.note("the IDs of the other generator: %s", r)
	}
	return c.result(c.app, "IDs")
}

// roundedStream refuses IDs that were rounded: equal ones may differ then.
func roundedStream(d *inspect.Digits, l firn.Layout) error {
	if r := d.Rounding(l, nil); r.Sure {
		return refused(inspect.Unrounded, "the IDs of the other generator are %s: they cannot be compared", r)
	}
	return nil
}
