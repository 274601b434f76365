package console

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// A planPage plans a layout.
type planPage struct {
	Time, Node, Seq int
	Unit            string
	Epoch           string
	Low             string // the lowest field: seq or node
	Units           []string
	Starts          []start
	Fault           string
	Total, Over     int
	Made            *planned
}

// A start is a known layout to start with.
type start struct{ Name, About, Link string }

// A planned is the capacity of a layout.
type planned struct {
	Layout   firn.Layout
	Text     string
	Ruler    ruler
	Fields   []field
	PerTick  string
	Second   string
	All      string
	Nodes    string
	Last     time.Time
	Years    string
	JS, Sign verdict
	Index    string
	Now      time.Time
}

// A verdict is an answer with a reason.
type verdict struct {
	Good bool
	Text string
}

var planUnits = []string{"100us", "1ms", "4ms", "10ms", "100ms", "1s"}

// planStarts lists common layouts to start with.
var planStarts = []string{"default", "hazelcast", "snowcast", "sonyflake", "js53"}

// plan shows the capacity that the widths give. The page's address has all its
// input.
func (k *Console) plan(v *visit) {
	q := v.r.URL.Query()
	p := planPage{Units: planUnits}
	p.Time, p.Node, p.Seq = 41, 10, 12
	p.Unit, p.Epoch = "1ms", firn.Default().Epoch().Format(time.DateOnly)
	var faults []string
	for _, n := range []struct {
		key  string
		v    *int
		most int
	}{{"time", &p.Time, 63}, {"node", &p.Node, 48}, {"seq", &p.Seq, 48}} {
		if text := q.Get(n.key); text != "" {
			bits, err := strconv.Atoi(text)
			if err != nil || bits < 0 || bits > n.most {
				faults = append(faults, fmt.Sprintf("%s is %q: it must be a number of bits from 0 to %d.", fieldName(n.key), text, n.most))
				continue
			}
			*n.v = bits
		}
	}
	if unit := strings.TrimSpace(q.Get("unit")); unit != "" {
		p.Unit = unit
	}
	if epoch := strings.TrimSpace(q.Get("epoch")); epoch != "" {
		p.Epoch = epoch
	}
	if p.Low = "seq"; q.Get("low") == "node" {
		p.Low = "node"
	}
	p.Total = p.Time + p.Node + p.Seq
	for _, name := range planStarts {
		l := firn.MustParseLayout(name)
		for info := range firn.Presets() {
			if info.Name == name {
				p.Starts = append(p.Starts, start{name, info.About, planLink(l)})
			}
		}
	}
	if faults == nil {
		var err error
		if p.Made, err = p.make(v.now); err != nil {
			faults = append(faults, detail(err)+".")
		}
	}
	p.Fault = strings.Join(faults, " ")
	v.answer("plan", "planned", planAddress(p.Time, p.Node, p.Seq, p.Unit, p.Epoch, p.Low), p.Fault, page{Title: "Plan a layout", Section: "plan", Body: p})
}

// unitName formats a unit for people: 1 ms.
func unitName(s string) string {
	d, err := time.ParseDuration(s)
	if err != nil {
		return s
	}
	return length(d)
}

func planLink(l firn.Layout) string {
	pieces := l.Pieces()
	return planAddress(l.TimeBits(), l.NodeBits(), l.SeqBits(), l.Unit().String(), l.Epoch().Format(time.DateOnly), pieces[len(pieces)-1].Field)
}

func planAddress(t, n, s int, unit, epoch, low string) string {
	return "/plan?" + url.Values{
		"time": {strconv.Itoa(t)}, "node": {strconv.Itoa(n)}, "seq": {strconv.Itoa(s)}, "unit": {unit}, "epoch": {epoch}, "low": {low},
	}.Encode()
}

// make makes the layout and computes its capacity.
func (p *planPage) make(now time.Time) (*planned, error) {
	if p.Total > 64 {
		p.Over = p.Total - 64
		return nil, fmt.Errorf("%d bits are %d too many for a 64-bit ID: reduce the time, the node or the sequence", p.Total, p.Over)
	}
	if p.Time == 0 {
		return nil, fmt.Errorf("a layout needs time bits: without them IDs would repeat at once")
	}
	epoch := p.Epoch
	if len(epoch) == len(time.DateOnly) {
		epoch += "T00:00:00Z"
	}
	text := fmt.Sprintf("bits=time:%d.node:%d.seq:%d,unit=%s,epoch=%s", p.Time, p.Node, p.Seq, p.Unit, epoch)
	if p.Low == "node" {
		text = fmt.Sprintf("bits=time:%d.seq:%d.node:%d,unit=%s,epoch=%s", p.Time, p.Seq, p.Node, p.Unit, epoch)
	}
	for _, part := range []struct {
		bits int
		name string
	}{{p.Node, ".node:0"}, {p.Seq, ".seq:0"}} {
		if part.bits == 0 {
			text = strings.Replace(text, part.name, "", 1)
		}
	}
	l, err := firn.ParseLayout(text)
	if err != nil {
		return nil, err
	}
	// Prefer the name of a preset with the same bits.
	for _, name := range planStarts {
		if same := firn.MustParseLayout(name).WithEpoch(l.Epoch()); same.Fields() == l.Fields() && same.Unit() == l.Unit() {
			l = same
			break
		}
	}
	m := &planned{
		Layout: l, Text: l.String(), Ruler: newRuler(l.Bits(), cutsOf(l), nil), Fields: explainLayout(l),
		PerTick: power(l.SeqBits()), Second: count(l.IDsPerSecond()), Nodes: power(l.NodeBits()),
		All:  count(l.IDsPerSecond() * math.Exp2(float64(l.NodeBits()))),
		Last: l.Last(), Years: left(l.Last(), now), Now: now,
	}
	m.JS = untilBit(l, 53, "Exact in a JavaScript number: never above 2^53.", "Not exact in a JavaScript number: send IDs as strings.", "Exact in a JavaScript number until %s: send IDs as strings.", now)
	m.Sign = untilBit(l, 63, "Never negative as a signed 64-bit number.", "Sometimes negative as a signed 64-bit number.", "Negative as a signed 64-bit number from %s on.", now)
	m.Index = "8 bytes as bigint: the keys of a billion rows are 8 GB in an index, where UUIDs are 16 GB."
	return m, nil
}

// untilBit says in words from when on IDs have a bit set.
func untilBit(l firn.Layout, bit int, never, always, from string, now time.Time) verdict {
	switch at, isAlways, isNever := inspect.FirstWith(l, bit); {
	case isNever:
		return verdict{true, never}
	case isAlways || at.Before(now):
		return verdict{false, always}
	default:
		return verdict{bit == 63 && at.Year()-now.Year() > 30, fmt.Sprintf(from, day(at))}
	}
}
