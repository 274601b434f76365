// Package layouts describes layouts: what they hold, in words and in JSON,
// their bits as a box, and which ones offer what is needed.
package layouts

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// PresetNames returns the names of the presets.
func PresetNames() (names []string) {
	for p := range firn.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// Name returns the name of the sequencer for IDs of a layout if none is given.
// Different layouts need different names, because a sequencer has one layout.
func Name(l firn.Layout) string {
	if l == firn.Default() {
		return "default"
	}
	name := cmp.Or(l.Preset(), "layout")
	if firn.MustParseLayout(cmp.Or(l.Preset(), "default")) == l {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(l.String()))
	return fmt.Sprintf("%s-%08x", name, h.Sum32())
}

// JSON returns a layout for JSON.
func JSON(l firn.Layout) any {
	return map[string]any{
		"layout": l.String(), "fields": l.Definition(), "format": l.Format().String(),
		"bits": l.Bits(), "time_bits": l.TimeBits(), "node_bits": l.NodeBits(), "seq_bits": l.SeqBits(),
		"random_bits": l.RandBits(),
		"unit_ns":     int64(l.Unit()), "epoch_ms": inspect.Millis(l.Epoch()), "last_ms": inspect.Millis(l.Last()),
		"max_node": inspect.Number(l.MaxNode()), "max_seq": inspect.Number(l.MaxSeq()),
		"ids_per_second": l.IDsPerSecond(),
		"ordered":        l.Ordered(), "read_only": l.ReadOnly(),
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
		if p.Field != firn.FieldZero && (p.Field != firn.FieldConst || p.Const != 0) {
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

// until says from when on IDs of a layout have a bit set: never, always, or
// from with the date in it.
func until(l firn.Layout, bit int, never, always, from string) string {
	switch at := firstWith(l, bit); {
	case at == nil:
		return never
	case at.IsZero():
		return always
	default:
		return fmt.Sprintf(from, at.Format(time.DateOnly))
	}
}

// epoch returns the epoch of a layout as RFC 3339, or as Unix milliseconds
// if that has no such form.
func epoch(l firn.Layout) string {
	if t := l.Epoch(); t.Nanosecond() == 0 && t.Year() >= 1 && t.Year() <= 9999 {
		return t.Format(time.RFC3339)
	}
	return fmt.Sprint(l.Epoch().UnixMilli())
}

// Widths lists the widths, such as time 41 seq 6 node 16.
func Widths(l firn.Layout) string {
	var parts []string
	for _, p := range l.Pieces() {
		if p.Field == firn.FieldZero {
			continue
		}
		name := p.Field.String()
		if p.Reversed {
			name += "~"
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, p.Width))
	}
	return strings.Join(parts, " ")
}

// Date formats a date, or only the year if it is far away.
func Date(t time.Time) string {
	switch {
	case t.Year() > 999_999:
		return fmt.Sprintf("year %d M", t.Year()/1e6)
	case t.Year() > 9999:
		return fmt.Sprintf("year %d", t.Year())
	}
	return t.Format(time.DateOnly)
}

// Nodes formats how many nodes a layout has.
func Nodes(l firn.Layout) string {
	if l.NodeBits() == 0 {
		return "1"
	}
	return power(l.NodeBits())
}

// CountNodes is Nodes with a format for their exact number. Those of 64 bits
// are one more than a uint64 holds.
func CountNodes(l firn.Layout, format func(n uint64) string) string {
	if l.NodeBits() == 64 {
		return Nodes(l)
	}
	return format(l.MaxNode() + 1)
}

// power formats 2 to the n, in full if that is short.
func power(n int) string {
	if n > 20 {
		return fmt.Sprintf("2^%d", n)
	}
	return fmt.Sprint(1 << n)
}

// Rate formats how many IDs a node makes in a second, or "-" if random bits
// decide.
func Rate(l firn.Layout) string {
	if l.SeqBits() == 0 && l.RandBits() > 0 {
		return "-"
	}
	return Short(l.IDsPerSecond())
}

// Short formats a number of IDs for people.
func Short(x float64) string {
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

// A Plan is what a layout must offer.
type Plan struct {
	Years, Nodes float64
	Rate         float64 // sustained IDs per second of one node
}

// Fit returns layouts with so many bits, ticks of a millisecond and Firn's
// epoch that last for the years from now: the spare bits go to all fields, or
// to one of them. If none fits, the error says by how many bits.
func (p *Plan) Fit(total int, now time.Time) (all []firn.Layout, err error) {
	bitsFor := func(n float64) int { return int(math.Ceil(math.Log2(max(n, 1)))) }
	elapsed := max(now.Sub(firn.Default().Epoch()).Seconds(), 0)
	time, node, seq := bitsFor((elapsed+p.Years*inspect.Year)*1000), bitsFor(p.Nodes), bitsFor(p.Rate/1000)
	spare := total - time - node - seq
	if spare < 0 {
		return nil, fmt.Errorf("no layout of %d bits fits: time %d, node %d and sequence %d are %d too many",
			total, time, node, seq, -spare)
	}
	third := spare / 3
	js := firn.MustParseLayout("js53")
	shares := [][3]int{{third, third, spare - 2*third}, {0, 0, spare}, {0, spare, 0}, {spare, 0, 0}}
	for _, more := range slices.Compact(shares) {
		time, node, seq := min(48, time+more[0]), min(48, node+more[1]), min(48, seq+more[2])
		text := fmt.Sprintf("bits=time:%d.node:%d.seq:%d,unit=1ms,epoch=%s", time, node, seq, epoch(firn.Default()))
		if js.TimeBits() == time && js.NodeBits() == node && js.SeqBits() == seq {
			text = "js53"
		} else if time+node+seq == 63 {
			text = fmt.Sprintf("default,node-bits=%d,seq-bits=%d", node, seq)
		}
		l, err := firn.ParseLayout(text)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// Box draws a layout as a box with a cell for each piece and the bit
// positions above it, up to about 90 columns wide. The function number returns
// what a cell shows next to its field; constants and zero bits show
// themselves.
func Box(l firn.Layout, number func(firn.Piece) string) string {
	var numbers, top, middle, bottom strings.Builder
	for i, p := range l.Pieces() {
		field := p.Field.String()
		if p.Reversed {
			field += "~"
		}
		text := strings.TrimSpace(field + " " + number(p))
		switch p.Field {
		case firn.FieldZero:
			text = "0"
		case firn.FieldConst:
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
