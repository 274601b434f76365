package inspect

import (
	"fmt"
	"math"
	"math/bits"
	"net"
	"strings"
	"time"

	"github.com/firnid/firn"
)

// A judge weighs one reading: how probable is it that a generator of this
// layout made this very text? Weights are logarithms of base 2, so every bit
// that must be as it is by chance costs one. Only their differences count.
//
// Times of late are probable, those to come are not. Small nodes and sequences
// are more probable than large ones, except in formats that fill these fields
// with hashes, addresses or counters that never start again.
type judge struct {
	now time.Time
	n   *number
	r   *Reading
}

func (j *judge) weigh(w float64) { j.r.weight += w }

func (j *judge) pro(format string, a ...any) { j.r.For = append(j.r.For, fmt.Sprintf(format, a...)) }
func (j *judge) con(format string, a ...any) {
	j.r.Against = append(j.r.Against, fmt.Sprintf(format, a...))
}

// A habit is what is known of a preset's IDs beside their bits.
type habit struct {
	prior    float64 // how common the IDs are that people ask about
	anyNode  bool    // all node numbers are alike
	anySeq   bool    // all sequence numbers are alike
	noFields bool    // others fill node and sequence with random bits
	note     string  // what a reader of this preset should know
}

func habitOf(preset string) habit {
	switch preset {
	case "default":
		return habit{prior: 1.5, anyNode: true}
	case "hazelcast":
		// Clients take a hundred IDs at a time, which is more than a tick has.
		return habit{prior: -0.5, anySeq: true}
	case "twitter":
		return habit{prior: 2, anyNode: true}
	case "discord":
		return habit{prior: 2.5, anySeq: true}
	case "instagram":
		return habit{prior: -1, anyNode: true, anySeq: true}
	case "sonyflake":
		return habit{anyNode: true}
	case "mastodon":
		return habit{anySeq: true}
	case "snowcast":
		return habit{prior: -2, note: "snowcast's epoch and number of nodes are settings; 2014 and 8192 are taken here"}
	case "lable":
		return habit{prior: -1}
	case "js53":
		return habit{anyNode: true}
	case "uuidv7", "ulid":
		return habit{anyNode: true, anySeq: true, noFields: true}
	case "xid", "objectid":
		return habit{anyNode: true, anySeq: true}
	case "boundary":
		return habit{anyNode: true}
	}
	return habit{}
}

// layout weighs a reading by a layout.
func (j *judge) layout(l firn.Layout) {
	h := habitOf(l.Preset())
	j.weigh(h.prior)
	j.encoding(l.Format())
	j.time(l)
	j.constants(l)
	j.node(l, h)
	j.sequence(l, h)
	j.weigh(-float64(l.RandomBits()))
	if h.noFields {
		j.con("other makers of this format put random bits where the node and the sequence are read")
	}
	if h.note != "" {
		j.con("%s", h.note)
	}
	j.rounded()
}

// encoding weighs the text against how the format writes its own IDs.
func (j *judge) encoding(own firn.Format) {
	if j.n.about != "" {
		j.pro("%s", j.n.about)
	}
	f, ok := j.n.encoding.Format()
	if ok && f == firn.Decimal && j.n.padded {
		j.weigh(-12)
		j.con("decimal numbers have no zeros in front")
	}
	switch {
	case !ok || f == own:
	case own == firn.UUID && f == firn.Base62 && j.n.size == 128:
		j.weigh(-1) // Boundary's own
	case f == firn.UUID || f == firn.Hex || f == firn.Decimal:
		j.weigh(-3)
	default:
		j.weigh(-6)
		if j.n.loose && j.n.size == 64 {
			j.con("the format does not write its IDs so, and a word can look like this too")
		}
	}
	if f == firn.Hex && ok && strings.Trim(j.r.Hex(), "0123456789") == "" && len(j.r.Bytes) == 8 {
		j.con("it could also be a decimal number: hexadecimal is written with 0x where there is a doubt")
	}
}

// Year is the mean length of a year in seconds.
const Year = 365.2425 * 86400

// What times are probable, as seconds before now.
const (
	minute  = 60.0
	usual   = 20 * Year // most IDs are younger
	longAgo = 60 * Year
)

// time weighs the time of the reading. One half of the IDs that people ask about
// are spread over the last 20 years; of the other, as many are from the last
// ten minutes as are from the last ten hours before, and so on.
func (j *judge) time(l firn.Layout) {
	t := j.r.Time
	age := Age(t, j.now)
	var density float64 // per second
	switch {
	case age < -100*Year:
		density = 1e-6 / (1e6 * Year)
	case age < -Year:
		density = 1e-5 / (100 * Year)
	case age < -minute:
		density = 1e-3 / Year
	case age < usual:
		old := max(age, 0)
		density = 0.5/((old+minute)*math.Log(usual/minute)) + 0.5/usual
	case age < longAgo:
		density = 0.01 / (longAgo - usual)
	default:
		density = 1e-6 / (1e6 * Year)
	}
	j.weigh(math.Log2(density * l.Unit().Seconds()))

	j.r.Plausible = age >= -minute && age < 40*Year
	stamp := Stamp(t, l.Unit())
	switch {
	case age < -minute:
		j.con("the time %s would be %s in the future", stamp, Span(-age))
	case age < usual:
		j.pro("the time %s is %s ago", stamp, Span(max(age, 0)))
	default:
		j.con("the time %s is %s ago", stamp, Span(age))
	}
	// Nobody had IDs made on the day that an epoch was chosen for, most of all
	// not for a small number of any other kind.
	if first := t.Sub(l.Epoch()); first < 24*time.Hour && age > 86400 && l.Epoch().Year() > 1970 {
		j.weigh(-10)
		j.r.Plausible = false
		j.con("the time is only %s after the layout's epoch: the number is small for an ID", Span(first.Seconds()))
	}
}

// constants weighs bits that the layout took from the ID itself, and names
// those that are the same in all IDs.
func (j *judge) constants(l firn.Layout) {
	switch l.Preset() {
	case "lable":
		j.weigh(-5)
		if l.Ordered() {
			j.pro("the mode bit says time-sequential, and the last four bits cluster %d", j.n.bytes[7]&15)
		} else {
			j.pro("the mode bit says spread, and the last four bits cluster %d", j.n.bytes[7]&15)
		}
	case "uuidv7":
		j.pro("its variant and version bits are those of a UUID of version 7")
	case "js53":
		j.pro("it fits the 53 bits of a JavaScript number")
	}
}

// small is how much of all IDs have a small number in a field, where formats
// fill it from 0 up. The others are spread over all of its values.
const small = 0.75

func fieldWeight(bits int, v uint64, alike bool) float64 {
	n := math.Exp2(float64(bits))
	if bits == 0 || alike {
		return -float64(bits)
	}
	return math.Log2(small/((float64(v)+1)*(math.Log(n)+0.6)) + (1-small)/n)
}

// nodeWeight weighs the pieces of a node one by one: worker 1 of process 0 has
// two small numbers, and not one of 32.
func nodeWeight(l firn.Layout, node uint64, alike bool) float64 {
	parts, most := l.NodeParts(node), l.NodeParts(l.MaxNode())
	if len(parts) < 2 {
		return fieldWeight(l.NodeBits(), node, alike)
	}
	w := 0.0
	for i, p := range parts {
		w += fieldWeight(bits.Len64(most[i].Value), p.Value, alike)
	}
	return w
}

func (j *judge) node(l firn.Layout, h habit) {
	node, width := j.r.Node, l.NodeBits()
	j.weigh(nodeWeight(l, node, h.anyNode))
	switch {
	case width == 0:
	case l.Preset() == "boundary" && node>>40&1 == 1:
		j.weigh(-6)
		j.con("the node %s would be the address of a group, which no network card has", MAC(node))
	case l.Preset() == "boundary":
		j.pro("the node is the MAC address %s", MAC(node))
	case h.noFields:
	case node < 16:
		j.pro("the node is %d%s", node, partsText(j.r.NodeParts))
	case !h.anyNode && float64(node) > 0.25*math.Exp2(float64(width)):
		j.con("the node is %d of %d: most are small numbers", node, l.MaxNode())
	}
}

func (j *judge) sequence(l firn.Layout, h habit) {
	seq, bits := j.r.Seq, l.SeqBits()
	j.weigh(fieldWeight(bits, seq, h.anySeq))
	switch {
	case bits == 0 || h.anySeq:
	case seq < 4:
		j.pro("the sequence is %d", seq)
	case float64(seq) > 0.25*math.Exp2(float64(bits)):
		j.con("the sequence is %d of %d: a node seldom makes so many IDs in %v", seq, l.MaxSeq(), l.Unit())
	}
}

// rounded notices decimal digits as JavaScript and spreadsheets leave them of a
// number above 2^53: not those of the double, but the fewest that name it, with
// zeros at the end.
func (j *judge) rounded() {
	if f, ok := j.n.encoding.Format(); !ok || f != firn.Decimal || j.n.size != 64 {
		return
	}
	v := uint64(j.n.id64())
	digits := j.r.Dec()
	if v <= 1<<53 || shortest(v) != digits {
		return
	}
	// A number that is a double itself, such as 2^60, is as likely an ID whose last
	// bits are zeros, unless its decimal digits end in zeros too.
	zeros := len(digits) - len(strings.TrimRight(digits, "0"))
	if exact := uint64(float64(v)) == v; zeros == 0 || exact && zeros < 3 {
		return
	}
	if chance := math.Exp2(float64(bits.Len64(v) - 53)); chance < 1024 {
		j.con("it looks rounded, as JavaScript leaves numbers above 2^53: then its last bits are not those of the ID; one ID in %.0f looks so by chance", chance)
	} else {
		j.con("it looks rounded, as JavaScript leaves numbers above 2^53: then its last bits are not those of the ID")
	}
}

func partsText(parts []firn.NodePart) string {
	if len(parts) < 2 {
		return ""
	}
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", p.Name, p.Value)
	}
	return " (" + b.String() + ")"
}

// MAC writes a node of 48 bits as the address of a network card.
func MAC(node uint64) string {
	mac := make(net.HardwareAddr, 6)
	for i := range mac {
		mac[i] = byte(node >> (40 - 8*i))
	}
	return mac.String()
}
