package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/layouts"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

func newLayout(a *app) *cobra.Command {
	var (
		p      = layouts.Plan{Years: 60, Nodes: 32, Rate: 32_000}
		doPlan bool
		asJSON bool
	)
	cmd := command("layout", cobra.ArbitraryArgs, func(cmd *cobra.Command, args []string) error {
		st := a.style()
		switch {
		case len(args) > 1:
			return misuse("join the settings with commas: hazelcast,node-bits=10", "%d layouts given, %d too many",
				len(args), len(args)-1)
		case doPlan && len(args) == 1:
			return misuse("leave out "+args[0], "--plan finds a layout and takes none, but got %q", args[0])
		case doPlan:
			return a.printPlan(&p, asJSON)
		}
		for _, name := range []string{"years", "nodes", "rate"} {
			if cmd.Flags().Changed(name) {
				return misuse("firn layout --plan --"+name+" …", "--%s needs --plan", name)
			}
		}
		if len(args) == 0 {
			return listPresets(a, st, asJSON)
		}
		layout, err := firn.ParseLayout(args[0])
		switch {
		case err != nil:
			return misuse(layoutHint, "%q: %w", args[0], textfmt.Plain(err))
		case asJSON:
			a.printJSON(layouts.JSON(layout))
		default:
			showLayout(a.stdout, st, layout)
		}
		return nil
	})
	cmd.ValidArgsFunction = wordsOf(layouts.PresetNames()...)
	cmd.Flags().BoolVar(&doPlan, "plan", false, "find layouts that fit")
	needVar(cmd, &p.Years, "years", "how long it must last from now", 0, 1e6)
	needVar(cmd, &p.Nodes, "nodes", "number of nodes", 0, 1<<48)
	needVar(cmd, &p.Rate, "rate", "sustained IDs per second of one node", 0, 1e12)
	jsonVar(cmd, &asJSON)
	return cmd
}

// needVar adds a flag of --plan: a number from least to most.
func needVar(cmd *cobra.Command, need *float64, name, usage string, least, most float64) {
	parse := func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v >= least && v <= most) {
			return 0, fmt.Errorf("it must be a number from %g to %g", least, most)
		}
		return v, nil
	}
	show := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	cmd.Flags().Var(&value[float64]{need, parse, show, "N"}, name, "with --plan: "+usage)
}

// listPresets lists the named layouts. A narrow terminal shows the first
// columns.
func listPresets(a *app, st style, asJSON bool) error {
	head := []string{"layout", "fields", "nodes", "IDs/s", "bits", "from", "to", "about"}
	if st.width > 0 && st.width < 150 {
		head = head[:4]
	}
	t := a.list(asJSON, head...)
	t.right = map[int]bool{2: true, 3: true, 4: true}
	for p := range firn.Presets() {
		l := p.Layout
		cells := []string{
			p.Name, layouts.Widths(l), layouts.Nodes(l), layouts.Rate(l), fmt.Sprint(l.Bits()),
			layouts.Date(l.Epoch()), layouts.Date(l.Last()), p.About,
		}
		t.add(layouts.JSON(l), cells[:len(head)]...)
	}
	return t.end("")
}

// showLayout prints everything about one layout.
func showLayout(w io.Writer, st style, l firn.Layout) {
	if box := layouts.Box(l, func(p firn.Piece) string { return strconv.Itoa(p.Width) }); st.fits(box) {
		fmt.Fprintf(w, "%s\n", box)
	}
	var r rows
	r.add("layout", "%s", st.bold(l.String()))
	for _, f := range layouts.Facts(l) {
		r.add(f.Key, "%s", f.Text)
	}
	r.print(w, st)
}

// printPlan lists layouts of 63 bits and of 53 that fit.
func (a *app) printPlan(p *layouts.Plan, asJSON bool) error {
	t := a.list(asJSON, "bits", "IDs/s per node", "nodes", "last date", "time", "node", "seq", "layout")
	t.right = map[int]bool{0: true, 1: true, 2: true, 4: true, 5: true, 6: true}
	t.broken = true // unless one fits
	for _, total := range []int{63, 53} {
		all, err := p.Fit(total, a.now())
		if err != nil {
			a.note("%v", err)
		}
		for _, l := range all {
			t.broken = false
			t.add(layouts.JSON(l), fmt.Sprint(total), layouts.Short(l.IDsPerSecond()), layouts.Nodes(l),
				layouts.Date(l.Last()),
				fmt.Sprint(l.TimeBits()), fmt.Sprint(l.NodeBits()), fmt.Sprint(l.SeqBits()), l.String())
		}
	}
	return t.end("")
}
