package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/firnid/firn"
)

// Needs are what a layout must offer. Zero means no need.
type Needs struct {
	Years, Nodes float64
	Rate         float64 // sustained IDs per second of one node
	Now          time.Time
}

// A Split is the number of bits of each field; a tick is a millisecond.
type Split struct{ Time, Node, Seq int }

// Total returns the number of bits of all fields.
func (s Split) Total() int { return s.Time + s.Node + s.Seq }

// Least returns the narrowest split that meets the needs. A need that is not
// stated has a modest value.
func (n *Needs) Least() Split {
	elapsed := n.Now.Sub(firn.Default().Epoch()).Seconds()
	return Split{
		Time: bitsFor((max(elapsed, 0) + cmp.Or(n.Years, 30)*Year) * 1000),
		Node: bitsFor(max(n.Nodes, 1)),
		Seq:  bitsFor(max(n.Rate/1000, 1)),
	}
}

// bitsFor returns how many bits distinguish n values.
func bitsFor(n float64) int { return int(math.Ceil(math.Log2(n))) }

// Splits lists splits of total bits that meet the needs: the spare bits go to
// one field each time, and to all.
func (n *Needs) Splits(total int) []Split {
	if n.Years == 0 && n.Nodes == 0 && n.Rate == 0 {
		return usualSplits(total)
	}
	least := n.Least()
	spare := total - least.Total()
	if spare < 0 {
		return nil
	}
	s := func(time, node, seq int) Split { return Split{least.Time + time, least.Node + node, least.Seq + seq} }
	half := spare / 2
	third := spare / 3
	list := []Split{
		s(third, third, spare-2*third),
		s(0, 0, spare),
		s(0, spare, 0),
		s(spare, 0, 0),
		s(0, half, spare-half),
	}
	list = slices.DeleteFunc(list, func(s Split) bool { return s.Time > 48 || s.Node > 48 || s.Seq > 48 })
	if len(list) == 0 {
		list = append(list, s(min(spare, 48-least.Time), 0, 0))
	}
	var unique []Split
	for _, s := range list {
		if !slices.Contains(unique, s) {
			unique = append(unique, s)
		}
	}
	return unique
}

// usualSplits are common splits.
func usualSplits(total int) []Split {
	var list []Split
	for _, t := range []int{41, 42, 40} {
		for _, node := range []int{0, 5, 8, 10, 13, 16} {
			seq := total - t - node
			if seq < 5 || seq > 24 || t != 41 && node != 10 && node != 5 {
				continue
			}
			list = append(list, Split{t, node, seq})
		}
	}
	return list
}

// Layout returns the split as a layout with Firn's epoch.
func (s Split) Layout() (firn.Layout, error) {
	if js := firn.MustParseLayout("js53"); s == (Split{js.TimeBits(), js.NodeBits(), js.SeqBits()}) {
		return js, nil
	}
	if s.Total() == 63 {
		return firn.ParseLayout(fmt.Sprintf("default,node-bits=%d,seq-bits=%d", s.Node, s.Seq))
	}
	return firn.ParseLayout(fmt.Sprintf("bits=time:%d.node:%d.seq:%d,unit=1ms,epoch=%s", s.Time, s.Node, s.Seq, EpochText(firn.Default())))
}
