package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

func newLayout(a *app) *cobra.Command {
	var (
		p       plan
		doPlan  bool
		asJSON  bool
		diagram = "auto"
	)
	cmd := &cobra.Command{
		Use:   "layout [LAYOUT] | layout --plan",
		Short: "Explain layouts, or find one that fits",
		Long: `Layout lists the named layouts, or explains one: its bits, its number of IDs and nodes, and
how long it lasts.

  firn layout hazelcast

A LAYOUT is a name with settings, such as hazelcast,node-bits=10,seq-bits=12, or custom
fields from the top bit down:

  bits=time:41.node:10.seq:12,unit=1ms,epoch=2026-01-01T00:00:00Z

With --json, negative_from_ms and inexact_in_javascript_from_ms are null for never and 0
for always.

--plan finds layouts for given needs, with 63 bits (positive in every language) and 53
bits (exact in JavaScript). --years counts from now; --rate is the IDs per second of one
node.`,
		Example: `  firn layout
  firn layout hazelcast
  firn layout snowcast,nodes=300
  firn layout --plan --years 50 --nodes 1000 --rate 1e6`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: wordsOf(presetNames()...),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := bufio.NewWriter(a.stdout)
			l := a.lookOf(a.stdout)
			switch {
			case len(args) > 1:
				return misuse("join the settings with commas: hazelcast,node-bits=10", "%d layouts given, %d too many", len(args), len(args)-1)
			case doPlan && len(args) == 1:
				return misuse("leave out "+args[0], "--plan finds a layout and takes none, but got %q", args[0])
			case doPlan:
				p.now = a.now()
				err := p.print(out, l, asJSON)
				if e := out.Flush(); e != nil {
					return e
				}
				return err
			}
			for _, name := range []string{"years", "nodes", "rate", "bits"} {
				if cmd.Flags().Changed(name) {
					return misuse("firn layout --plan --"+name+" …", "--%s needs --plan", name)
				}
			}
			if len(args) == 0 {
				if cmd.Flags().Changed("diagram") {
					return misuse("firn layout hazelcast --diagram "+diagram, "--diagram needs one layout")
				}
				listPresets(out, l, asJSON)
				return out.Flush()
			}
			layout, err := firn.ParseLayout(args[0])
			if err != nil {
				return misuse(layoutHint(args[0]), "%q: %w", args[0], inspect.Plain(err))
			}
			if asJSON {
				fmt.Fprintf(out, "%s\n", inspect.AppendLayout(nil, layout))
			} else {
				showLayout(out, l, layout, drawn(diagram, l))
			}
			return out.Flush()
		},
	}
	cmd.Flags().BoolVar(&doPlan, "plan", false, "find layouts that fit")
	cmd.Flags().Float64Var(&p.years, "years", 0, "with --plan: how long it must last from now")
	cmd.Flags().Float64Var(&p.nodes, "nodes", 0, "with --plan: number of nodes")
	cmd.Flags().Float64Var(&p.rate, "rate", 0, "with --plan: sustained IDs per second of one node")
	cmd.Flags().IntVar(&p.bits, "bits", 0, "with --plan: number of bits of an ID, up to 128 (default 63 and 53)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per layout")
	diagramVar(cmd, &diagram)
	cmd.MarkFlagsMutuallyExclusive("plan", "diagram")
	cmd.MarkFlagsMutuallyExclusive("json", "diagram")
	return cmd
}

func listPresets(w io.Writer, l look, asJSON bool) {
	t := table{
		head:  []string{"layout", "bits", "fields", "from", "to", "nodes", "IDs/s", "about"},
		right: map[int]bool{1: true, 5: true, 6: true},
	}
	isNarrow := l.width > 0 && l.width < 150
	if isNarrow {
		t = table{head: []string{"layout", "fields", "nodes", "IDs/s"}, right: map[int]bool{2: true, 3: true}}
	}
	for p := range firn.Presets() {
		x := p.Layout
		switch {
		case asJSON:
			fmt.Fprintf(w, "%s\n", inspect.AppendLayout(nil, x))
			continue
		case isNarrow:
			t.add(p.Name, fields(x), nodes(x), rate(x))
			continue
		}
		t.add(p.Name, fmt.Sprint(x.Bits()), fields(x), year(x.Epoch()), year(x.Last()), nodes(x), rate(x), p.About)
	}
	if asJSON {
		return
	}
	t.print(w, l)
	if l.terminal {
		fmt.Fprintf(w, "\n%s\n", l.dim("IDs/s is the sustained rate of one node; firn layout NAME shows more"))
	}
}

// fields lists the widths, such as time 41 seq 6 node 16.
func fields(l firn.Layout) string {
	var parts []string
	for _, p := range l.Pieces() {
		if p.Field == "zero" {
			continue
		}
		name := p.Field
		if p.Reversed {
			name += "~"
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, p.Width))
	}
	return strings.Join(parts, " ")
}

// year formats a date, or only the year if it is far away.
func year(t time.Time) string {
	switch {
	case t.Year() > 999_999:
		return fmt.Sprintf("year %d M", t.Year()/1e6)
	case t.Year() > 9999:
		return fmt.Sprintf("year %d", t.Year())
	}
	return t.Format(time.DateOnly)
}

func nodes(l firn.Layout) string {
	if l.NodeBits() == 0 {
		return "1"
	}
	return power(l.NodeBits())
}

// power formats 2 to the n, in full if that is short.
func power(n int) string {
	if n > 20 {
		return fmt.Sprintf("2^%d", n)
	}
	return fmt.Sprint(1 << n)
}

func rate(l firn.Layout) string {
	if l.SeqBits() == 0 && l.RandomBits() > 0 {
		return "-"
	}
	return count(l.IDsPerSecond())
}

// count formats a number of IDs for people.
func count(x float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if x >= u.size {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", math.Floor(x/u.size*10)/10), ".0") + u.name
		}
	}
	return fmt.Sprintf("%.4g", x)
}

// showLayout prints everything about one layout.
func showLayout(w io.Writer, look look, l firn.Layout, boxed bool) {
	if boxed {
		box := l.Diagram(nil)
		if look.width == 0 || boxWidth(box) <= look.width {
			fmt.Fprintf(w, "%s\n", box)
		}
	}
	var r rows
	r.add("layout", "%s", look.bold(l.String()))
	var keys []string
	for p := range firn.Presets() {
		if p.Name == l.Preset() {
			r.add("about", "%s", p.About)
			keys = p.Keys
		}
	}
	r.add("bits", "%d: %s", l.Bits(), fields(l))
	r.add("as fields", "bits=%s,unit=%v,epoch=%s", l.Fields(), l.Unit(), inspect.EpochText(l))
	r.add("first", "%s", inspect.Stamp(l.Epoch(), l.Unit()))
	r.add("last", "%s", inspect.Stamp(l.Last(), l.Unit()))
	switch {
	case l.NodeBits() == 0:
		r.add("nodes", "1: the layout has no node bits")
	default:
		text := fmt.Sprintf("%s (0 to %d)", power(l.NodeBits()), l.MaxNode())
		if parts := l.NodeParts(0); len(parts) > 0 {
			var names []string
			for _, p := range l.NodeParts(l.MaxNode()) {
				names = append(names, fmt.Sprintf("%s 0 to %d", p.Name, p.Value))
			}
			text += ": " + strings.Join(names, ", ")
		}
		r.add("nodes", "%s", text)
	}
	if l.SeqBits() == 0 {
		r.add("sequence", "none: a node makes one ID in %v, or as many as its random bits distinguish", l.Unit())
	} else {
		r.add("sequence", "%s IDs in %v, %s per second, for each node", power(l.SeqBits()), l.Unit(), count(l.IDsPerSecond()))
	}
	if l.RandomBits() > 0 {
		r.add("random", "%d bits", l.RandomBits())
	}
	r.add("order", "%s", map[bool]string{true: "IDs sort by time", false: "IDs do not sort by time"}[l.Ordered()])
	if l.Bits() == 64 {
		r.add("signed", "%s", untilText(l, 63, "never negative as a signed number", "IDs may be negative as signed numbers", "negative as a signed number from %s"))
		r.add("JavaScript", "%s", untilText(l, 53, "exact in a JavaScript number (53 bits)", "not exact in a JavaScript number: use strings", "exact in a JavaScript number only before %s: use strings"))
	}
	if l.ReadOnly() {
		r.add("made", "not by Firn, which can only read these IDs")
	} else {
		r.add("ahead", "%v: default of how far a generator may run ahead of the clock", l.MaxAhead())
	}
	r.add("written", "%s", l.Format())
	for _, k := range keys {
		r.add("key", "%s", k)
	}
	r.add("key", "epoch=%s  Unix milliseconds or RFC 3339", inspect.EpochText(l))
	r.print(w, look)
}

func untilText(l firn.Layout, bit int, never, always, from string) string {
	switch at, isAlways, isNever := inspect.FirstWith(l, bit); {
	case isNever:
		return never
	case isAlways:
		return always
	default:
		return fmt.Sprintf(from, at.Format(time.DateOnly))
	}
}
