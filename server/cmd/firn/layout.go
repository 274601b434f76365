package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

func newLayout(a *app) *cobra.Command {
	var (
		p      = plan{years: 60, nodes: 32, rate: 32_000}
		doPlan bool
		asJSON bool
	)
	cmd := command("layout", cobra.ArbitraryArgs, func(cmd *cobra.Command, args []string) error {
		st := a.style()
		switch {
		case len(args) > 1:
			return misuse("join the settings with commas: hazelcast,node-bits=10", "%d layouts given, %d too many", len(args), len(args)-1)
		case doPlan && len(args) == 1:
			return misuse("leave out "+args[0], "--plan finds a layout and takes none, but got %q", args[0])
		case doPlan:
			return p.print(a, asJSON)
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
			a.printJSON(jsonOf(layout))
		default:
			showLayout(a.stdout, st, layout)
		}
		return nil
	})
	cmd.ValidArgsFunction = wordsOf(presetNames()...)
	cmd.Flags().BoolVar(&doPlan, "plan", false, "find layouts that fit")
	needVar(cmd, &p.years, "years", "how long it must last from now", 0, 1e6)
	needVar(cmd, &p.nodes, "nodes", "number of nodes", 0, 1<<48)
	needVar(cmd, &p.rate, "rate", "sustained IDs per second of one node", 0, 1e12)
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
		cells := []string{p.Name, widthsText(l), nodesText(l), rateText(l), fmt.Sprint(l.Bits()), dateText(l.Epoch()), dateText(l.Last()), p.About}
		t.add(jsonOf(l), cells[:len(head)]...)
	}
	return t.end("")
}

// jsonOf returns a layout for JSON.
func jsonOf(l firn.Layout) any {
	return map[string]any{
		"layout": l.String(), "fields": l.Fields(), "format": l.Format().String(),
		"bits": l.Bits(), "time_bits": l.TimeBits(), "node_bits": l.NodeBits(), "seq_bits": l.SeqBits(), "random_bits": l.RandomBits(),
		"unit_ns": int64(l.Unit()), "epoch_ms": inspect.Millis(l.Epoch()), "last_ms": inspect.Millis(l.Last()),
		"max_node": inspect.Number(l.MaxNode()), "max_seq": inspect.Number(l.MaxSeq()), "ids_per_second": l.IDsPerSecond(),
		"ordered": l.Ordered(), "read_only": l.ReadOnly(),
		"negative_from_ms": millisWith(l, 63), "inexact_in_javascript_from_ms": millisWith(l, 53),
	}
}

// millisWith returns from when on IDs of a layout have a bit set: Unix
// milliseconds, nil for never, 0 for always.
func millisWith(l firn.Layout, bit int) any {
	switch at := firstWith(l, bit); {
	case at == nil:
		return nil
	case at.IsZero():
		return 0
	default:
		return inspect.Millis(*at)
	}
}

// firstWith returns from when on the IDs of a 64-bit layout have a bit set: nil
// for never, the zero time for always. Larger IDs always have.
func firstWith(l firn.Layout, bit int) *time.Time {
	always := new(time.Time)
	if l.Bits() != 64 {
		return always
	}
	highest := -1
	for _, p := range l.Pieces() {
		if p.Field != "zero" && (p.Field != "const" || p.Const != 0) {
			highest = max(highest, p.Pos+p.Width-1)
		}
	}
	if highest < bit {
		return nil
	}
	if p, err := l.Decompose(firn.ID(1) << bit); l.Ordered() && err == nil && p.Node == 0 && p.Seq == 0 {
		return &p.Time
	}
	return always
}

// epochText returns the epoch of a layout as RFC 3339, or as Unix milliseconds
// if that has no such form.
func epochText(l firn.Layout) string {
	if t := l.Epoch(); t.Nanosecond() == 0 && t.Year() >= 1 && t.Year() <= 9999 {
		return t.Format(time.RFC3339)
	}
	return fmt.Sprint(l.Epoch().UnixMilli())
}

// widthsText lists the widths, such as time 41 seq 6 node 16.
func widthsText(l firn.Layout) string {
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

// dateText formats a date, or only the year if it is far away.
func dateText(t time.Time) string {
	switch {
	case t.Year() > 999_999:
		return fmt.Sprintf("year %d M", t.Year()/1e6)
	case t.Year() > 9999:
		return fmt.Sprintf("year %d", t.Year())
	}
	return t.Format(time.DateOnly)
}

func nodesText(l firn.Layout) string {
	if l.NodeBits() == 0 {
		return "1"
	}
	return powerText(l.NodeBits())
}

// powerText formats 2 to the n, in full if that is short.
func powerText(n int) string {
	if n > 20 {
		return fmt.Sprintf("2^%d", n)
	}
	return fmt.Sprint(1 << n)
}

func rateText(l firn.Layout) string {
	if l.SeqBits() == 0 && l.RandomBits() > 0 {
		return "-"
	}
	return shortNumber(l.IDsPerSecond())
}

// shortNumber formats a number of IDs for people.
func shortNumber(x float64) string {
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
func showLayout(w io.Writer, st style, l firn.Layout) {
	if box := bitsBox(l, func(p firn.Piece) string { return strconv.Itoa(p.Width) }); st.fits(box) {
		fmt.Fprintf(w, "%s\n", box)
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
	r.add("bits", "%d: %s", l.Bits(), widthsText(l))
	r.add("as fields", "bits=%s,unit=%v,epoch=%s", l.Fields(), l.Unit(), epochText(l))
	r.add("first", "%s", inspect.Stamp(l.Epoch(), l.Unit()))
	r.add("last", "%s", inspect.Stamp(l.Last(), l.Unit()))
	if l.NodeBits() == 0 {
		r.add("nodes", "1: the layout has no node bits")
	} else {
		text := fmt.Sprintf("%s (0 to %d)", powerText(l.NodeBits()), l.MaxNode())
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
		r.add("sequence", "%s IDs in %v, %s per second, for each node", powerText(l.SeqBits()), l.Unit(), shortNumber(l.IDsPerSecond()))
	}
	if l.RandomBits() > 0 {
		r.add("random", "%d bits", l.RandomBits())
	}
	r.add("order", "%s", map[bool]string{true: "IDs sort by time", false: "IDs do not sort by time"}[l.Ordered()])
	if l.Bits() == 64 {
		r.add("signed", "%s", untilText(l, 63, "never negative as a signed number",
			"IDs may be negative as signed numbers", "negative as a signed number from %s"))
		r.add("JavaScript", "%s", untilText(l, 53, "exact in a JavaScript number (53 bits)",
			"not exact in a JavaScript number: use strings", "exact in a JavaScript number only before %s: use strings"))
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
	r.add("key", "epoch=%s  Unix milliseconds or RFC 3339", epochText(l))
	r.print(w, st)
}

func untilText(l firn.Layout, bit int, never, always, from string) string {
	switch at := firstWith(l, bit); {
	case at == nil:
		return never
	case at.IsZero():
		return always
	default:
		return fmt.Sprintf(from, at.Format(time.DateOnly))
	}
}

// A plan has the flags of layout --plan: what a layout must offer.
type plan struct {
	years, nodes float64
	rate         float64 // sustained IDs per second of one node
}

// print lists layouts of 63 bits and of 53 that fit, with ticks of a millisecond
// and Firn's epoch: the spare bits go to all fields, or to one of them. If none
// fits, a note says by how many bits.
func (p *plan) print(a *app, asJSON bool) error {
	t := a.list(asJSON, "bits", "IDs/s per node", "nodes", "last date", "time", "node", "seq", "layout")
	t.right = map[int]bool{0: true, 1: true, 2: true, 4: true, 5: true, 6: true}
	bitsFor := func(n float64) int { return int(math.Ceil(math.Log2(max(n, 1)))) }
	elapsed := max(a.now().Sub(firn.Default().Epoch()).Seconds(), 0)
	time, node, seq := bitsFor((elapsed+p.years*inspect.Year)*1000), bitsFor(p.nodes), bitsFor(p.rate/1000)
	found := false
	for _, total := range []int{63, 53} {
		spare := total - time - node - seq
		if spare < 0 {
			a.note("no layout of %d bits fits: time %d, node %d and sequence %d are %d too many", total, time, node, seq, -spare)
			continue
		}
		third := spare / 3
		for _, more := range slices.Compact([][3]int{{third, third, spare - 2*third}, {0, 0, spare}, {0, spare, 0}, {spare, 0, 0}}) {
			time, node, seq := min(48, time+more[0]), min(48, node+more[1]), min(48, seq+more[2])
			text := fmt.Sprintf("bits=time:%d.node:%d.seq:%d,unit=1ms,epoch=%s", time, node, seq, epochText(firn.Default()))
			if js := firn.MustParseLayout("js53"); js.TimeBits() == time && js.NodeBits() == node && js.SeqBits() == seq {
				text = "js53"
			} else if time+node+seq == 63 {
				text = fmt.Sprintf("default,node-bits=%d,seq-bits=%d", node, seq)
			}
			l, err := firn.ParseLayout(text)
			if err != nil {
				return err
			}
			found = true
			t.add(jsonOf(l), fmt.Sprint(total), shortNumber(l.IDsPerSecond()), nodesText(l),
				dateText(l.Last()), fmt.Sprint(time), fmt.Sprint(node), fmt.Sprint(seq), l.String())
		}
	}
	if !found {
		return answerNo()
	}
	return t.end("")
}

// bitsBox draws a layout as a box with a cell for each piece and the bit
// positions above it, up to about 90 columns wide. The function number returns
// what a cell shows next to its field; constants and unused bits show
// themselves.
func bitsBox(l firn.Layout, number func(firn.Piece) string) string {
	var numbers, top, middle, bottom strings.Builder
	for i, p := range l.Pieces() {
		field := p.Field
		if p.Reversed {
			field += "~"
		}
		text := strings.TrimSpace(field + " " + number(p))
		switch p.Field {
		case "zero":
			text = "0"
		case "const":
			text = "=" + strconv.FormatUint(p.Const, 10)
		}
		high, low := strconv.Itoa(p.Pos+p.Width-1), strconv.Itoa(p.Pos)
		if p.Width == 1 {
			high = ""
		}
		width := max(p.Width*64/max(l.Bits(), 64), utf8.RuneCountInString(text)+2, len(high)+len(low)+1)
		numbers.WriteString(" " + high + strings.Repeat(" ", width-len(high)-len(low)) + low)
		left, right := "┬", "┴"
		if i == 0 {
			left, right = "┌", "└"
		}
		top.WriteString(left + strings.Repeat("─", width))
		bottom.WriteString(right + strings.Repeat("─", width))
		fmt.Fprintf(&middle, "│ %-*s", width-1, text)
	}
	return numbers.String() + "\n" + top.String() + "┐\n" + middle.String() + "│\n" + bottom.String() + "┘\n"
}
