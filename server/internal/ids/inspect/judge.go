package inspect

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
)

// A reading is weighed by how probable it is that a generator of its layout
// made this very text. Weights are base-2 logarithms, so every bit whose value
// is a coincidence costs one. Only their differences matter.
//
// Recent times are probable, future ones are not. Small nodes and sequences are
// more probable than large ones, except in formats that fill these fields with
// hashes, addresses or counters that never restart.

// A profile is what is known of a preset's IDs apart from their bits.
type profile struct {
	prior    float64   // how common these IDs are among those that people look up
	born     time.Time // when the format came into use; zero if that is its epoch
	anyNode  bool      // all node IDs are equally probable
	fewParts bool      // the pieces of the node are 0 or very small
	anySeq   bool      // all sequence numbers are equally probable
	note     string    // a note for readers of this preset
	maker    string    // the library with this default layout, if it has no other name
}

const randomElsewhere = "other generators of this format put random bits in place of node and sequence"

var profiles = map[string]profile{
	"default": {prior: 1.5, anyNode: true},
	// Clients take a hundred IDs at a time, more than a tick has.
	"hazelcast": {prior: -0.5, born: time.Date(2018, 3, 1, 0, 0, 0, 0, time.UTC), anySeq: true},
	// bwmarrin/snowflake has the same bits, and most programs use small nodes.
	"twitter":   {prior: 1},
	"discord":   {prior: 0.5, fewParts: true},
	"instagram": {prior: 1, anyNode: true, anySeq: true},
	"sonyflake": {prior: 2.2, anyNode: true},
	"mastodon":  {prior: 0.5, born: time.Date(2017, 5, 1, 0, 0, 0, 0, time.UTC), anySeq: true},
	"snowcast": {prior: -3,
		note: "snowcast's epoch and number of nodes are configurable; 2014 and 8192 are assumed here"},
	"lable":    {prior: -1, born: time.Date(2014, 1, 1, 0, 0, 0, 0, time.UTC)},
	"js53":     {anyNode: true},
	"uuidv7":   {anyNode: true, anySeq: true, note: randomElsewhere},
	"ulid":     {anyNode: true, anySeq: true, note: randomElsewhere},
	"xid":      {anyNode: true, anySeq: true},
	"objectid": {anyNode: true, anySeq: true},
	"boundary": {anyNode: true},
}

// otherLayouts are default layouts of libraries that have no name in Firn.
var otherLayouts = [...]struct {
	layout  string
	format  firn.Format
	profile profile
}{
	{"sonyflake,epoch=2025-01-01T00:00:00Z", firn.Decimal, profile{maker: "Sonyflake 2", prior: 1, anyNode: true}},
	// TSIDs of hypersistence and tsid-creator, as numbers or in base32; their
	// counter begins with a random number.
	{"bits=time:42.node:10.seq:12,epoch=2020-01-01T00:00:00Z", firn.Base32,
		profile{maker: "hypersistence-tsid and tsid-creator", anyNode: true, anySeq: true}},
	// Seata's counter moves its clock; php-snowflake's begins with a random
	// number. ShardingSphere and php-snowflake read their epochs in local time.
	{"bits=time:51.node:6.seq:6,epoch=1582136402000", firn.Decimal, profile{maker: "yitter", prior: -1}},
	{"bits=node:10.time:41.seq:12,epoch=2020-05-02T16:00:00Z", firn.Decimal,
		profile{maker: "Seata", prior: -2, anyNode: true, anySeq: true}},
	{"bits=time:41.node:10.seq:12,epoch=2019-12-24T16:00:00Z", firn.Decimal, profile{maker: "CosId", prior: -2}},
	{"bits=time:41.node:10.seq:12,epoch=2016-11-01T00:00:00Z", firn.Decimal,
		profile{maker: "ShardingSphere in UTC", prior: -3}},
	{"bits=time:41.node:10.seq:12,epoch=2019-08-08T08:08:08Z", firn.Decimal,
		profile{maker: "php-snowflake in UTC", prior: -3, anySeq: true}},
	{"bits=time:41.node:10.seq:12,epoch=2016-10-31T16:00:00Z", firn.Decimal,
		profile{maker: "ShardingSphere in China", prior: -4}},
	{"bits=time:41.node:10.seq:12,epoch=2019-08-08T00:08:08Z", firn.Decimal,
		profile{maker: "php-snowflake in China", prior: -4, anySeq: true}},
	// UUIDs of the draft that PyPI's uuid7 0.1 follows: version 7, but the time
	// is in seconds, with a fraction of two times 12 bits.
	{"bits=time:36.rand:12.const:4=7.rand:12.const:2=2.seq:14.rand:48,unit=1s", firn.UUID,
		profile{prior: -3, note: draftUUID}},
}

const draftUUID = "a draft of UUIDv7 from 2021 has these bits, as in PyPI's uuid7 0.1; " +
	"UUIDs of RFC 9562 count milliseconds"

// A candidate is a layout with what is known of its IDs.
type candidate struct {
	profile
	layout firn.Layout
	name   string
	preset string
	format firn.Format
	nodes  []int // the widths of the named pieces of the node, or that of the node
}

func newCandidate(l firn.Layout) *candidate {
	c := &candidate{layout: l, name: l.String(), preset: l.Preset(), format: l.Format()}
	c.profile = profiles[c.preset]
	for _, p := range l.NodeParts(l.MaxNode()) {
		c.nodes = append(c.nodes, bits.Len64(p.Value))
	}
	if len(c.nodes) < 2 {
		c.nodes = []int{l.NodeBits()}
	}
	return c
}

var lastCandidate atomic.Pointer[candidate]

// candidateOf returns the candidate of a layout: mostly the same as last time.
func candidateOf(l firn.Layout) *candidate {
	c := lastCandidate.Load()
	if c == nil || c.layout != l {
		c = newCandidate(l)
		lastCandidate.Store(c)
	}
	return c
}

// presets has the named layouts, and default layouts of other libraries, by
// size.
var presets = sync.OnceValue(func() map[int][]*candidate {
	bySize := make(map[int][]*candidate)
	for p := range firn.Presets() {
		bySize[p.Layout.Bits()] = append(bySize[p.Layout.Bits()], newCandidate(p.Layout))
	}
	for _, x := range otherLayouts {
		c := newCandidate(firn.MustParseLayout(x.layout))
		c.profile, c.format = x.profile, x.format
		bySize[c.layout.Bits()] = append(bySize[c.layout.Bits()], c)
	}
	return bySize
})

// forText returns the candidate for a text. The IDs of Lable contain which of
// Lable's layouts they have. It returns nil if the text has another format.
func (c *candidate) forText(n *form.Decoding) *candidate {
	switch {
	case c.preset == "lable":
		return lables()[n.Bytes[6]>>4&1][n.Bytes[7]&15]
	case c.preset == "xid" && n.Form.String() != "xid", c.preset == "objectid" && n.Form.String() == "xid":
		// The two layouts have the same bits; only their texts differ.
		return nil
	}
	return c
}

// lables returns Lable's layouts by mode and cluster.
var lables = sync.OnceValue(func() (layouts [2][16]*candidate) {
	for mode, name := range []string{"spread", "time-sequential"} {
		for cluster := range 16 {
			layouts[mode][cluster] = newCandidate(firn.MustParseLayout(fmt.Sprintf("lable,mode=%s,cluster=%d",
				name, cluster)))
		}
	}
	return layouts
})

// read reads a decoded text by the layout.
func (c *candidate) read(n *form.Decoding, now time.Time) (Reading, error) {
	p, err := c.layout.DecomposeBytes(n.Bytes)
	if err != nil {
		return Reading{}, err
	}
	age := Age(p.Time, now)
	return Reading{
		Name: c.name, Layout: c.layout, Form: n.Form, Bytes: n.Bytes,
		HasParts: true, Time: p.Time, Node: p.Node, Seq: p.Seq, candidate: c, decoding: n, now: now,
		Plausible: age >= -minute && age < 40*Year && !c.isFirstDay(p.Time, now),
	}, nil
}

// weigh weighs a reading by a layout.
func (r *Reading) weigh() {
	c := r.candidate
	r.weight = c.prior - float64(c.layout.RandBits()) + formWeight(r.decoding, c.format) +
		c.timeWeight(r.Time, r.now) + c.nodeWeight(r.Node) +
		math.Log2(probability(r.Seq, c.layout.SeqBits(), c.anySeq, false))
	if c.preset == "lable" {
		r.weight -= 5 // mode and cluster are taken from the ID
	}
}

// formWeight weighs whether a format writes its own IDs like this text.
func formWeight(n *form.Decoding, own firn.Format) (w float64) {
	f, ok := n.Form.Format()
	if ok && f == firn.Decimal && n.Form != form.OfDigits(n.Text) {
		w = -12
	}
	switch {
	case !ok || f == own, own == firn.Base32 && f == firn.Decimal && n.Bits() == 64:
		return w
	case f == firn.Hex && own == firn.Decimal && form.IsDigits(n.Text):
		return w - 14 // most likely a number of so many digits
	case own == firn.UUID && f == firn.Base62 && n.Bits() == 128:
		return w - 1 // Boundary's own
	case own == firn.UUID && f == firn.Base32:
		return w - 12 // 26 such digits are a ULID
	case f == firn.UUID || f == firn.Hex || f == firn.Decimal:
		return w - 3
	}
	return w - 6
}

// Year is the mean length of a year in seconds.
const Year = 365.2425 * 86400

// Probable ages of IDs, in seconds.
const (
	minute   = 60.0
	usualAge = 20 * Year // most IDs are younger
	oldAge   = 60 * Year
)

var logUsualAge = math.Log(usualAge / minute)

// timeWeight weighs the time of an ID. Half of the IDs that people look up are
// spread over the last 20 years. Of the other half, as many are from the last
// ten minutes as from the ten hours before, and so on.
func (c *candidate) timeWeight(t, now time.Time) float64 {
	w := math.Log2(density(Age(t, now)) * c.layout.Unit().Seconds())
	if t.Before(c.born) {
		w -= 6
	}
	if c.isFirstDay(t, now) {
		w -= 10
	}
	return w
}

// density returns the probability of an age, per second.
func density(age float64) float64 {
	switch {
	case age < -100*Year:
	case age < -Year:
		return 1e-5 / (100 * Year)
	case age < -minute:
		return 1e-3 / Year
	case age < usualAge:
		return 0.5/((max(age, 0)+minute)*logUsualAge) + 0.5/usualAge
	case age < oldAge:
		return 0.01 / (oldAge - usualAge)
	}
	return 1e-6 / (1e6 * Year)
}

// isFirstDay reports whether a time is on the day of the layout's epoch, when
// hardly any ID was made. Above all, a small number of any other kind looks
// like such an ID.
func (c *candidate) isFirstDay(t, now time.Time) bool {
	epoch := c.layout.Epoch()
	return epoch.Year() > 1970 && t.Sub(epoch) < 24*time.Hour && Age(t, now) > 86400
}

// smallShare is the share of IDs with a small number in a field that formats
// fill from 0 up. The others are spread over all values.
const smallShare = 0.75

// probability returns the probability of a number in a field of that width. If
// uniform is set, all numbers are equally probable; if few is set, the field is
// 0 in most IDs, and 1 in most of the rest.
func probability(v uint64, width int, uniform, few bool) float64 {
	n, each := float64(v)+1, math.Ldexp(1, -width)
	switch {
	case uniform || width == 0:
		return each
	case few:
		return smallShare*6/(math.Pi*math.Pi)/(n*n) + (1-smallShare)*each
	}
	return smallShare/(float64(width)*math.Ln2+0.6)/n + (1-smallShare)*each
}

// nodeWeight weighs each piece of a node on its own: worker 1 of process 0 is
// two small numbers, not the number 32.
func (c *candidate) nodeWeight(node uint64) (w float64) {
	for _, width := range slices.Backward(c.nodes) {
		w += math.Log2(probability(node&(1<<width-1), width, c.anyNode, c.fewParts && len(c.nodes) > 1))
		node >>= width
	}
	return w
}

// For returns what speaks for the reading.
func (r *Reading) For() []string { return r.reasons().pros }

// Against returns what speaks against the reading.
func (r *Reading) Against() []string { return r.reasons().cons }

// Reason says briefly why the reading may not be the best one, to people who
// see its time.
func (r *Reading) Reason() string {
	if cons := r.Against(); len(cons) > 0 {
		return strings.TrimPrefix(cons[0], r.timeIs())
	}
	if !r.HasParts {
		return "contains no time"
	}
	return r.Ago()
}

// Ago says how long ago the time of the ID was.
func (r *Reading) Ago() string {
	age := Age(r.Time, r.now)
	if age < 0 {
		return Span(-age) + " in the future"
	}
	return Span(age) + " ago"
}

// timeIs begins a sentence about the time of the ID.
func (r *Reading) timeIs() string { return "the time " + r.Stamp() + " is " }

// evidence is the reasons for and against a reading.
type evidence struct{ pros, cons []string }

func (l *evidence) pro(format string, a ...any) { l.pros = append(l.pros, fmt.Sprintf(format, a...)) }

func (l *evidence) con(format string, a ...any) { l.cons = append(l.cons, fmt.Sprintf(format, a...)) }

func (r *Reading) reasons() (l evidence) {
	n := r.decoding
	if n.About != "" {
		l.pro("%s", n.About)
	}
	f, ok := n.Form.Format()
	switch {
	case !ok:
	case f == firn.Decimal && n.Form != form.OfDigits(n.Text):
		l.con("decimal numbers have no leading zeros")
	case f == firn.Hex && form.IsDigits(n.Text) && n.Bits() == 64:
		l.con("it could also be a decimal number: write 0x for hexadecimal if in doubt")
	case r.isWord():
		l.con("the format does not write its IDs like this, and a word can look the same")
	}
	if r.Layout.IsZero() || r.Layout == uuidv6() {
		r.uuidReasons(&l)
	}
	if r.candidate != nil {
		r.layoutReasons(&l)
	}
	if how := rounded(n, r.now); how != "" {
		l.con("%s", how)
	}
	return l
}

// isWord reports whether the text may be any word: the layout does not write
// its IDs like this.
func (r *Reading) isWord() bool {
	f, ok := r.decoding.Form.Format()
	return ok && r.decoding.Ambiguous && r.decoding.Bits() == 64 && r.candidate != nil && r.candidate.format != f
}

// layoutReasons adds what the parts of an ID say about its layout.
func (r *Reading) layoutReasons(l *evidence) {
	c := r.candidate
	if c.maker != "" {
		l.pro("it is the default layout of %s", c.maker)
	}
	if c.note != "" {
		l.con("%s", c.note)
	}
	switch age := Age(r.Time, r.now); {
	case r.Time.Before(c.born):
		l.con("%solder than the format, which came into use about %d", r.timeIs(), c.born.Year())
	case age < -minute || age >= usualAge:
		l.con("%s%s", r.timeIs(), r.Ago())
	default:
		l.pro("%s%s", r.timeIs(), r.Ago())
	}
	if c.isFirstDay(r.Time, r.now) {
		l.con("the time is only %s after the layout's epoch: the number is too small for an ID",
			Span(r.Time.Sub(c.layout.Epoch()).Seconds()))
	}
	switch c.preset {
	case "lable":
		l.pro("the mode bit and the last four bits are those of this mode and cluster")
	case "uuidv7":
		l.pro("its variant and version bits are those of a version 7 UUID")
	case "boundary":
		l.pro("the node is the MAC address %s", MAC(r.Node))
	}
}

// NodeText returns the named pieces of the node, as in
// "datacenter 1, worker 0".
func (r *Reading) NodeText() string {
	var texts []string
	for _, p := range r.NodeParts() {
		texts = append(texts, fmt.Sprintf("%s %d", p.Name, p.Value))
	}
	return strings.Join(texts, ", ")
}

// MAC formats a 48-bit node as the address of a network card.
func MAC(node uint64) string {
	b := binary.BigEndian.AppendUint64(nil, node<<16)
	return net.HardwareAddr(b[:6]).String()
}
