package inspect

import (
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
)

// A rounder is a way in which software rounds a number that it writes again.
type rounder struct {
	name  string
	round func(*big.Int) string // the text of an integer
}

// digitsOf writes a float with n digits, as %.15g does, and then as an integer.
func digitsOf(n int) func(*big.Int) string {
	return func(v *big.Int) string {
		f, _ := new(big.Float).SetInt(v).Float64()
		d, _ := new(big.Float).SetPrec(200).SetString(strconv.FormatFloat(f, 'e', n-1, 64))
		i, _ := d.Int(nil)
		return i.String()
	}
}

// rounders are what databases, languages and spreadsheets do, see
// docs/adopt.md.
var rounders = []rounder{
	{"float64 to integer", func(v *big.Int) string {
		f, _ := new(big.Float).SetInt(v).Float64()
		i, _ := new(big.Float).SetFloat64(f).Int(nil)
		return i.String()
	}},
	{"JavaScript", func(v *big.Int) string {
		f, _ := new(big.Float).SetInt(v).Float64()
		return strconv.FormatFloat(f, 'f', -1, 64)
	}},
	{"%.15g", digitsOf(15)}, {"%.16g", digitsOf(16)}, {"%.17g", digitsOf(17)},
	{"15 digits, cut off", func(v *big.Int) string {
		text := v.String()
		return text[:min(15, len(text))] + strings.Repeat("0", max(0, len(text)-15))
	}},
	{"%g", digitsOf(6)},
	{"float32 to integer", func(v *big.Int) string {
		f, _ := new(big.Float).SetInt(v).Float32()
		i, _ := new(big.Float).SetFloat64(float64(f)).Int(nil)
		return i.String()
	}},
}

// madeColumn makes a column of a layout's IDs as generators on some nodes do:
// busy, with up to 400 IDs in a tick, or quiet, with one now and then.
func madeColumn(t testing.TB, r *rand.Rand, l firn.Layout, busy bool, step time.Duration, n int) (ids []form.ID) {
	nodes := [][]uint64{{0}, {1, 2, 3}, {7}, {256}, {512}, {10, 20}, {r.Uint64(), r.Uint64(), r.Uint64()}, {l.MaxNode()}}[r.IntN(8)]
	at := testNow.Add(-time.Duration(r.IntN(2e8)) * time.Second / 10)
	for len(ids) < n {
		last := uint64(0)
		if busy {
			last = r.Uint64N(400) & l.MaxSeq()
		}
		for seq := range last + 1 {
			p := firn.Parts{Time: at, Node: nodes[r.IntN(len(nodes))] & l.MaxNode(), Seq: seq}
			ids = append(ids, compose(t, l, p))
		}
		at = at.Add(time.Duration(1+r.IntN(1000)) * step)
	}
	return ids[:n]
}

// made are the layouts of the laws: the presets that Firn makes, without those
// whose low bits are random, and some of moving.md.
func madeLayouts() (layouts []firn.Layout) {
	for p := range firn.Presets() {
		if !p.Layout.ReadOnly() && p.Layout.RandBits() == 0 {
			layouts = append(layouts, p.Layout)
		}
	}
	for _, text := range []string{
		"bits=time:42.node:10.seq:12,epoch=2020-01-01T00:00:00Z", "hazelcast,node-bits=10,seq-bits=12",
		"bits=time:47.node:12.seq:4", "bits=time:29.node:21.seq:13,unit=1s,epoch=2016-05-19T16:00:00Z",
	} {
		layouts = append(layouts, firn.MustParseLayout(text))
	}
	return layouts
}

// TestExactColumns accuses no column that has all its digits, and TestRoundedColumns
// each that has not.
func TestExactColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 8))
	for _, l := range madeLayouts() {
		for range 300 {
			busy := r.IntN(2) == 0
			ids := madeColumn(t, r, l, busy, l.Unit()*time.Duration(1+999*r.IntN(2)), 1+r.IntN(60))
			// A quiet system, also one that makes IDs at full seconds, is not even in doubt.
			low := fieldAt(l, 0)
			noDoubt := len(ids) >= 20 && low.Field == firn.FieldSeq && low.Width >= 8
			if r.IntN(4) == 0 {
				ids, noDoubt = append(ids, ids[:len(ids)/2]...), false // a foreign key
			}
			if got := judge(t, l, ids); got.Sure || noDoubt && got.How != "" && !got.Quiet {
				t.Errorf("%s, busy %t, %d exact IDs: %s", l, busy, len(ids), got)
			}
		}
	}
}

// judge returns what the digits of a column say, whose layout is known.
func judge(t *testing.T, l firn.Layout, ids []form.ID) Rounding {
	d, nodes := NewDigits(testNow), make(map[uint64]bool)
	for _, id := range ids {
		d.Add(id)
		if p, err := l.DecomposeBytes(id); err == nil {
			nodes[p.Node] = true
		}
	}
	return d.Rounding(l, slices.Collect(maps.Keys(nodes)))
}

func TestRoundedColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	columns := 0
	for _, l := range madeLayouts() {
		for _, how := range rounders {
			for _, busy := range []bool{true, false} {
				ids := madeColumn(t, r, l, busy, l.Unit(), map[bool]int{true: 3000, false: 60}[busy])
				changed := 0
				for i, id := range ids {
					v := new(big.Int).SetBytes(id)
					text := how.round(v)
					if text != v.String() {
						changed++
					}
					if v, _ = v.SetString(text, 10); v.BitLen() <= 8*len(id) {
						ids[i] = v.FillBytes(make([]byte, len(id)))
					}
				}
				if changed < len(ids)/4 || len(new(big.Int).SetBytes(ids[0]).String()) < 16 {
					continue // a quiet system's IDs are floats already, and those of js53 short
				}
				columns++
				// Floats whose lowest bits are a small node ID all read as node 0.
				got := judge(t, l, ids)
				if got.How == "" || !got.Sure && !strings.Contains(how.name, "float64") {
					t.Errorf("%s, busy %t, %s: %s, want rounded", l, busy, how.name, got)
				}
				// Without a layout, as in firn check.
				if got := judge(t, firn.Layout{}, ids); got.How == "" {
					t.Errorf("unknown %s, busy %t, %s: %s, want rounded", l, busy, how.name, got)
				}
			}
		}
	}
	if columns < 150 {
		t.Errorf("%d columns", columns)
	}
}
