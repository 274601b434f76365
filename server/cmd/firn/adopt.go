package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/ids/check"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/layouts"
	"github.com/firnid/firn/server/internal/ids/lines"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// An adoptCmd has the flags of the command adopt.
type adoptCmd struct {
	*checkInput
	check.Adoption
	name   string
	nodes  *grant.NodeRange
	shadow bool
	store  string
}

func newAdopt(a *app) *cobra.Command {
	c := adoptCmd{checkInput: newCheckInput(a)}
	first := func(cmd *cobra.Command, args []string) error { return oneName(cmd, args[:min(len(args), 1)]) }
	cmd := command("adopt", first, func(cmd *cobra.Command, args []string) error {
		c.name, args = args[0], args[1:]
		excluded := len(args) > 0 || c.Create || c.Stopped || c.nodes != nil || c.csv != "" || c.Generators > 0 ||
			!c.Layout.IsZero()
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
	layoutVar(cmd, &c.Layout, firn.ParseLayout,
		"layout of the IDs (default the one that they fit best, to be confirmed)")
	c.vars(cmd)
	cmd.Flags().Uint64Var(&c.Generators, "generators", 0,
		"number of generators that made the IDs, to confirm a guessed layout")
	nodesVar(cmd, &c.nodes, "node IDs of the sequencer (default the largest free half, quarter, …)")
	cmd.Flags().BoolVar(&c.Stopped, "stopped", false,
		"the other generator has stopped: use all node IDs, above the highest ID")
	cmd.Flags().BoolVar(&c.Create, "apply", false, "create the sequencer")
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
	c.Now = c.app.now()
	notes, err := c.Check(&report)
	for _, text := range notes {
		c.app.note("%s", text)
	}
	if err != nil {
		return refusal(err)
	}
	if err := c.nodes.Check(c.Layout); err != nil {
		return misuse("", "%w", err)
	}
	nodes, floor, err := c.Plan(&report, c.nodes)
	if err != nil {
		return refusal(err)
	}
	command := fmt.Sprintf("firn sequencer create %s --layout %s", c.name, c.Layout)
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
	if !c.Create {
		fmt.Fprintln(c.app.stdout, command)
		return nil
	}
	return c.app.withStore(ctx, c.store, true, func(s grant.Store) error {
		config := grant.DefaultConfig(s, c.Layout, nil)
		config.Nodes = nodes
		return c.app.create(asOperator(ctx), s, c.name, config, floor, false)
	})
}

// refusal is what the command answers to an error of a check.Adoption.
func refusal(err error) error {
	if no, ok := errors.AsType[*check.Refusal](err); ok {
		return refused(no.Hint, "%w", no.Err)
	}
	return err
}

// adoptSample is how many IDs decide about the layout.
const adoptSample = 10_000

// read reads the IDs, and guesses the layout if none is named.
func (c *adoptCmd) read(ctx context.Context, files []string) (report check.Report, err error) {
	if c.from.Is(firn.Raw) && c.Layout.IsZero() {
		return report, misuse("name their layout with --layout", "--from raw: the size of the IDs is needed")
	}
	summary := inspect.NewSummary(inspect.Options{From: c.from}, c.app.now())
	c.bits = c.Layout.Bits()
	err = c.files(ctx, files, func(where lines.Place, text string) (bad, err error) {
		if c.Layout.IsZero() && summary.Judged() < adoptSample {
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
	if c.Guessed = c.Layout.IsZero(); c.Guessed {
		c.Layout = summary.Report().Layout
	}
	return c.Report(c.Layout, c.app.now()), nil
}

func (c *adoptCmd) print(r check.Report) {
	st := c.app.style()
	var x rows
	x.add("IDs", "%s", countText(st, r.Count))
	switch {
	case c.Layout.IsZero():
		x.add("layout", "%s", st.yellow("no known layout"))
	case c.Guessed && c.Generators == 0:
		x.add("layout", "%s  %s", st.bold(c.Layout.String()), st.yellow("a guess"))
	default:
		x.add("layout", "%s", st.bold(c.Layout.String()))
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
			layouts.CountNodes(c.Layout, func(n uint64) string { return countText(st, n) }), check.NodeList(r.Nodes))
	}
	x.print(c.app.stdout, st)
}

// runShadow compares the other generator's IDs with those of the sequencer.
func (c *adoptCmd) runShadow(ctx context.Context, s grant.Store) error {
	info, err := grant.Lookup(ctx, s, c.name)
	if err != nil {
		return err
	}
	l := info.Config.Layout
	if l.Bits() != 64 {
		return misuse("", "IDs of sequencer %s have %d bits: --shadow compares those of 64", c.name, l.Bits())
	}
	return withSequencer(ctx, c.app, s, c.name,
		&sequencer.Options{Layout: l, MustExist: true, Now: c.app.clock}, sequencer.Open,
		func(q *sequencer.Sequencer) error {
			return c.compare(ctx, q, check.NewShadow(info, c.from), l)
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
