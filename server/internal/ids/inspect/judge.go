package inspect

import (
	"fmt"
	"math"
	"math/bits"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
)

// A judge weighs one reading: how probable is it that a generator of this
// layout made this very text? Weights are base-2 logarithms, so every bit whose
// value is a coincidence costs one. Only their differences matter.
//
// Recent times are probable, future ones are not. Small nodes and sequences are
// more probable than large ones, except in formats that fill these fields with
// hashes, addresses or counters that never restart.
type judge struct {
	now   time.Time
	n     *number
	r     *Reading
	quiet bool // only weigh, without reasons
	mass  float64
}

func (j *judge) weigh(w float64) { j.r.weight += w }

// scale is weigh for a probability. Judging spends most of its time on
// logarithms, so one is taken of all probabilities together.
func (j *judge) scale(p float64) { j.mass *= p }

func (j *judge) pro(format string, a ...any) {
	if !j.quiet {
		j.r.For = append(j.r.For, fmt.Sprintf(format, a...))
	}
}

func (j *judge) con(format string, a ...any) {
	if !j.quiet {
		j.r.Against = append(j.r.Against, fmt.Sprintf(format, a...))
	}
}

// A habit is what is known of a preset's IDs apart from their bits.
type habit struct {
	prior    float64   // how common these IDs are among those that people look up
	born     time.Time // when the format came into use; zero if that is its epoch
	anyNode  bool      // all node IDs are equally probable
	bothNode bool      // small and large nodes are both common
	fewParts bool      // the pieces of the node are 0 or very small
	anySeq   bool      // all sequence numbers are equally probable
	noFields bool      // other generators fill node and sequence with random bits
	note     string    // a note for readers of this preset
}

func habitOf(preset string) habit {
	switch preset {
	case "default":
		return habit{prior: 1.5, anyNode: true}
	case "hazelcast":
		// Clients take a hundred IDs at a time, more than a tick has.
		return habit{prior: -0.5, born: time.Date(2018, 3, 1, 0, 0, 0, 0, time.UTC), anySeq: true}
	case "twitter":
		// bwmarrin/snowflake has the same bits, and most programs use small nodes.
		return habit{prior: 1, bothNode: true}
	case "discord":
		return habit{prior: 0.5, fewParts: true}
	case "instagram":
		return habit{prior: -1, anyNode: true, anySeq: true}
	case "sonyflake":
		return habit{prior: 2.2, anyNode: true}
	case "mastodon":
		return habit{prior: 0.5, born: time.Date(2017, 5, 1, 0, 0, 0, 0, time.UTC), anySeq: true}
	case "snowcast":
		return habit{prior: -3, note: "snowcast's epoch and number of nodes are configurable; 2014 and 8192 are assumed here"}
	case "lable":
		return habit{prior: -1, born: time.Date(2014, 1, 1, 0, 0, 0, 0, time.UTC)}
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

// others are default layouts of libraries that have no name in Firn.
var others = [...]struct {
	layout string
	format firn.Format
	habit  habit
}{
	// Version 2 of sonyflake has another epoch.
	{"sonyflake,epoch=2025-01-01T00:00:00Z", firn.Decimal, habit{prior: 1, anyNode: true}},
	// TSIDs of hypersistence and tsid-creator, as numbers or in base32; their
	// counter begins with a random number.
	{"bits=time:42.node:10.seq:12,epoch=2020-01-01T00:00:00Z", firn.Base32, habit{prior: 0, anyNode: true, anySeq: true}},
}

// layout weighs a reading by a layout.
func (j *judge) layout(c *candidate) {
	j.mass = 1
	j.weigh(c.habit.prior - c.random)
	j.encoding(c.format)
	j.time(c)
	j.constants(c)
	j.node(c)
	j.sequence(c)
	if j.quiet {
		j.weigh(math.Log2(j.mass)) // otherwise the weight is known
	}
	if c.habit.noFields {
		j.con("other generators of this format put random bits in place of node and sequence")
	}
	if c.habit.note != "" {
		j.con("%s", c.habit.note)
	}
	j.rounded()
}

// encoding weighs whether the format writes its own IDs like this text.
func (j *judge) encoding(own firn.Format) {
	if j.n.about != "" {
		j.pro("%s", j.n.about)
	}
	f, ok := j.n.encoding.Format()
	if ok && f == firn.Decimal && j.n.padded {
		j.weigh(-12)
		j.con("decimal numbers have no leading zeros")
	}
	switch {
	case !ok || f == own, own == firn.Base32 && f == firn.Decimal && j.n.size == 64:
	case f == firn.Hex && own == firn.Decimal && j.n.digits:
		j.weigh(-14) // most likely a number of so many digits
	case own == firn.UUID && f == firn.Base62 && j.n.size == 128:
		j.weigh(-1) // Boundary's own
	case own == firn.UUID && f == firn.Base32:
		j.weigh(-12) // 26 such digits are a ULID
	case f == firn.UUID || f == firn.Hex || f == firn.Decimal:
		j.weigh(-3)
	default:
		j.weigh(-6)
		if j.n.loose && j.n.size == 64 {
			j.con("the format does not write its IDs like this, and a word can look the same")
		}
	}
	if !j.quiet && f == firn.Hex && ok && j.n.digits && len(j.r.Bytes) == 8 {
		j.con("it could also be a decimal number: write 0x for hexadecimal if in doubt")
	}
}

// Year is the mean length of a year in seconds.
const Year = 365.2425 * 86400

// Probable ages of IDs, in seconds.
const (
	minute  = 60.0
	usual   = 20 * Year // most IDs are younger
	longAgo = 60 * Year
)

var logUsual = math.Log(usual / minute)

// time weighs the time of the reading. Half of the IDs that people look up are
// spread over the last 20 years. Of the other half, as many are from the last
// ten minutes as from the ten hours before, and so on.
func (j *judge) time(c *candidate) {
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
		density = 0.5/((old+minute)*logUsual) + 0.5/usual
	case age < longAgo:
		density = 0.01 / (longAgo - usual)
	default:
		density = 1e-6 / (1e6 * Year)
	}
	j.scale(density * c.seconds)
	early := c.early && t.Before(c.habit.born)
	if early {
		j.weigh(-6)
	}

	j.r.Plausible = age >= -minute && age < 40*Year
	stamp := ""
	if !j.quiet {
		stamp = Stamp(t, c.unit)
	}
	switch {
	case j.quiet:
	case early:
		j.con("the time %s is older than the format, which came into use about %d", stamp, c.habit.born.Year())
	case age < -minute:
		j.con("the time %s is %s in the future", stamp, Span(-age))
	case age < usual:
		j.pro("the time %s is %s ago", stamp, Span(max(age, 0)))
	default:
		j.con("the time %s is %s ago", stamp, Span(age))
	}
	// IDs were hardly ever made on the very day of the epoch. Above all, a small
	// number of any other kind looks like such an ID.
	if age > 86400 && c.chosen && t.Sub(c.epoch) < 24*time.Hour {
		first := t.Sub(c.epoch)
		j.weigh(-10)
		j.r.Plausible = false
		j.con("the time is only %s after the layout's epoch: the number is too small for an ID", Span(first.Seconds()))
	}
}

// constants reports the bits that the layout took from the ID itself, and those
// that are the same in all IDs.
func (j *judge) constants(c *candidate) {
	switch c.preset {
	case "lable":
		j.weigh(-5)
		if c.layout.Ordered() {
			j.pro("the mode bit says time-sequential, and the last four bits cluster %d", j.n.bytes[7]&15)
		} else {
			j.pro("the mode bit says spread, and the last four bits cluster %d", j.n.bytes[7]&15)
		}
	case "uuidv7":
		j.pro("its variant and version bits are those of a version 7 UUID")
	case "js53":
		j.pro("it fits the 53 bits of a JavaScript number")
	}
}

// small is the share of IDs with a small number in a field that formats fill
// from 0 up. The others are spread over all values.
const small = 0.75

// A field is what is known about the numbers in some bits.
type field struct {
	width int
	mask  uint64
	alike bool    // all numbers are equally probable
	few   bool    // it is 0 in most IDs, and 1 in most of the rest
	scale float64 // probability scale of small numbers
	each  float64 // probability of any number
}

func newField(width int, alike, few bool) field {
	f := field{width: width, mask: 1<<width - 1, alike: alike || width == 0, few: few, each: math.Ldexp(1, -width)}
	switch {
	case f.alike:
	case few:
		f.scale, f.each = small*6/(math.Pi*math.Pi), (1-small)*f.each
	default:
		f.scale, f.each = small/(float64(width)*math.Ln2+0.6), (1-small)*f.each
	}
	return f
}

// mass returns the probability of a number in the field.
func (f *field) mass(v uint64) float64 {
	n := float64(v) + 1
	switch {
	case f.alike:
		return f.each
	case f.few:
		return f.scale/(n*n) + f.each
	}
	return f.scale/n + f.each
}

// nodeMass weighs each piece of a node on its own: worker 1 of process 0 is two
// small numbers, not the number 32.
func (c *candidate) nodeMass(node uint64) float64 {
	p := 1.0
	for i := len(c.nodes) - 1; i >= 0; i-- {
		f := &c.nodes[i]
		p *= f.mass(node & f.mask)
		node >>= f.width
	}
	return p
}

func (j *judge) node(c *candidate) {
	node, width := j.r.Node, c.nodeBits
	j.scale(c.nodeMass(node))
	switch {
	case width == 0:
	case c.preset == "boundary" && node>>40&1 == 1:
		j.weigh(-6)
		if !j.quiet {
			j.con("the node %s is a group address, which no network card has", MAC(node))
		}
	case j.quiet:
	case c.preset == "boundary":
		j.pro("the node is the MAC address %s", MAC(node))
	case c.habit.noFields:
	case node < 16:
		j.pro("the node is %d%s", node, partsText(j.r.NodeParts))
	case !c.habit.anyNode && !c.habit.bothNode && float64(node) > 0.25*math.Exp2(float64(width)):
		j.con("the node is %d of %d: most are small", node, c.layout.MaxNode())
	}
}

func (j *judge) sequence(c *candidate) {
	seq, bits := j.r.Seq, c.seqBits
	j.scale(c.seqs.mass(seq))
	switch {
	case j.quiet || bits == 0 || c.habit.anySeq:
	case seq < 4:
		j.pro("the sequence is %d", seq)
	case float64(seq) > 0.25*math.Exp2(float64(bits)):
		j.con("the sequence is %d of %d: a node seldom makes that many IDs in %v", seq, c.layout.MaxSeq(), c.unit)
	}
}

// rounded detects decimal numbers above 2^53 that JavaScript or a spreadsheet
// has rounded: not the digits of the double, but the fewest that identify it,
// padded with zeros.
func (j *judge) rounded() {
	if j.quiet {
		return
	}
	chance, ok := isRounded(j.n)
	switch {
	case !ok:
	case chance < 1024:
		j.con("it looks rounded, as JavaScript does above 2^53: the last bits of the ID are lost then; one ID in %.0f looks like this by chance", chance)
	default:
		j.con("it looks rounded, as JavaScript does above 2^53: the last bits of the ID are lost then")
	}
}

// isRounded reports whether a number looks rounded, and that one in chance IDs
// of its size looks like this by coincidence.
func isRounded(n *number) (chance float64, ok bool) {
	if f, ok := n.encoding.Format(); !ok || f != firn.Decimal || n.size != 64 {
		return 0, false
	}
	v := uint64(n.id64())
	if v <= 1<<53 {
		return 0, false
	}
	chance = math.Exp2(float64(bits.Len64(v) - 53))
	if v%10 != 0 {
		return chance, false
	}
	// A number that is exactly a double, such as 2^60, may well be an ID whose
	// last bits are zeros, unless its decimal digits end in zeros too.
	if uint64(float64(v)) == v && v%1000 != 0 {
		return chance, false
	}
	return chance, shortest(v) == strconv.FormatUint(v, 10)
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

// MAC formats a 48-bit node as the address of a network card.
func MAC(node uint64) string {
	mac := make(net.HardwareAddr, 6)
	for i := range mac {
		mac[i] = byte(node >> (40 - 8*i))
	}
	return mac.String()
}
