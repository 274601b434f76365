package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// A plan has the flags of layout --plan: what a layout must offer. Zero means
// no need.
type plan struct {
	years, nodes float64
	rate         float64 // sustained IDs per second of one node
	bits         int     // 0: 63 and 53
	now          time.Time
}

func (p *plan) print(w io.Writer, l look, asJSON bool) error {
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
func (p *plan) lacking(w io.Writer, l look, total int) {
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
