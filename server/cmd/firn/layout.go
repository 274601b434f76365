package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
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
			l := a.styleOf(a.stdout)
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
				return misuse(layoutHint, "%q: %w", args[0], inspect.Plain(err))
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

func listPresets(w io.Writer, l style, asJSON bool) {
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
func showLayout(w io.Writer, st style, l firn.Layout, boxed bool) {
	if boxed {
		box := l.Diagram(nil)
		if st.width == 0 || boxWidth(box) <= st.width {
			fmt.Fprintf(w, "%s\n", box)
		}
	}
	var r rows
	r.add("layout", "%s", st.bold(l.String()))
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
	r.print(w, st)
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

// A plan has the flags of layout --plan: what a layout must offer. Zero means
// no need.
type plan struct {
	years, nodes float64
	rate         float64 // sustained IDs per second of one node
	bits         int     // 0: 63 and 53
	now          time.Time
}

func (p *plan) print(w io.Writer, l style, asJSON bool) error {
	for _, need := range []struct {
		name string
		v    float64
		most float64
	}{{"years", p.years, 1e6}, {"nodes", p.nodes, 1 << 48}, {"rate", p.rate, 1e12}} {
		if !(need.v >= 0 && need.v <= need.most) {
			return misuse("", "--%s %g: it must be a number from 0 to %g", need.name, need.v, need.most)
		}
	}
	totals := []int{63, 53}
	if p.bits != 0 {
		if p.bits < 16 || p.bits > 128 {
			return misuse("", "--bits %d: it must be a number from 16 to 128", p.bits)
		}
		totals = []int{p.bits}
	}
	found := false
	for i, total := range totals {
		splits := p.splits(total)
		if len(splits) == 0 {
			if !asJSON {
				if i > 0 {
					fmt.Fprintln(w)
				}
				p.lacking(w, l, total)
			}
			continue
		}
		found = true
		t := table{head: []string{"IDs/s per node", "nodes", "last date", "time", "node", "seq", "layout"}, right: map[int]bool{0: true, 1: true, 3: true, 4: true, 5: true}}
		for _, s := range splits {
			layout, err := s.layout()
			if err != nil {
				return err
			}
			if asJSON {
				fmt.Fprintf(w, "%s\n", inspect.AppendLayout(nil, layout))
				continue
			}
			t.add(count(layout.IDsPerSecond()), nodes(layout), year(layout.Last()),
				fmt.Sprint(s.time), fmt.Sprint(s.node), fmt.Sprint(s.seq), layout.String())
		}
		if asJSON {
			continue
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, l.bold(bitsTitle(total)))
		t.print(w, l)
	}
	if !found {
		return answerNo()
	}
	return nil
}

func bitsTitle(total int) string {
	switch total {
	case 63:
		return "63 bits: never negative as a signed number"
	case 53:
		return "53 bits: exact in a JavaScript number"
	}
	return fmt.Sprintf("%d bits", total)
}

// lacking shows by how many bits the plan falls short.
func (p *plan) lacking(w io.Writer, l style, total int) {
	least := p.least()
	fmt.Fprintf(w, "%s\n", l.bold(bitsTitle(total)))
	fmt.Fprintf(w, "%s time %d, node %d and sequence %d are %d bits, %d too many\n", l.red("none fits:"), least.time, least.node, least.seq, least.total(), least.total()-total)
}

// A split is the number of bits of each field; a tick is a millisecond.
type split struct{ time, node, seq int }

// total returns the number of bits of all fields.
func (s split) total() int { return s.time + s.node + s.seq }

// least returns the narrowest split that meets the needs. A need that is not
// stated has a modest value.
func (p *plan) least() split {
	elapsed := p.now.Sub(firn.Default().Epoch()).Seconds()
	return split{
		time: bitsFor((max(elapsed, 0) + cmp.Or(p.years, 30)*inspect.Year) * 1000),
		node: bitsFor(max(p.nodes, 1)),
		seq:  bitsFor(max(p.rate/1000, 1)),
	}
}

// bitsFor returns how many bits distinguish n values.
func bitsFor(n float64) int { return int(math.Ceil(math.Log2(n))) }

// splits lists splits of total bits that meet the needs: the spare bits go to
// one field each time, and to all.
func (p *plan) splits(total int) []split {
	if p.years == 0 && p.nodes == 0 && p.rate == 0 {
		return usualSplits(total)
	}
	least := p.least()
	spare := total - least.total()
	if spare < 0 {
		return nil
	}
	s := func(time, node, seq int) split { return split{least.time + time, least.node + node, least.seq + seq} }
	half := spare / 2
	third := spare / 3
	list := []split{
		s(third, third, spare-2*third),
		s(0, 0, spare),
		s(0, spare, 0),
		s(spare, 0, 0),
		s(0, half, spare-half),
	}
	list = slices.DeleteFunc(list, func(s split) bool { return s.time > 48 || s.node > 48 || s.seq > 48 })
	if len(list) == 0 {
		list = append(list, s(min(spare, 48-least.time), 0, 0))
	}
	var unique []split
	for _, s := range list {
		if !slices.Contains(unique, s) {
			unique = append(unique, s)
		}
	}
	return unique
}

// usualSplits are common splits.
func usualSplits(total int) (list []split) {
	for _, w := range [][2]int{{41, 0}, {41, 5}, {41, 8}, {41, 10}, {41, 13}, {41, 16}, {42, 5}, {42, 10}, {40, 5}, {40, 10}} {
		if seq := total - w[0] - w[1]; seq >= 5 && seq <= 24 {
			list = append(list, split{w[0], w[1], seq})
		}
	}
	return list
}

// layout returns the split as a layout with Firn's epoch.
func (s split) layout() (firn.Layout, error) {
	if js := firn.MustParseLayout("js53"); s == (split{js.TimeBits(), js.NodeBits(), js.SeqBits()}) {
		return js, nil
	}
	if s.total() == 63 {
		return firn.ParseLayout(fmt.Sprintf("default,node-bits=%d,seq-bits=%d", s.node, s.seq))
	}
	return firn.ParseLayout(fmt.Sprintf("bits=time:%d.node:%d.seq:%d,unit=1ms,epoch=%s", s.time, s.node, s.seq, inspect.EpochText(firn.Default())))
}
