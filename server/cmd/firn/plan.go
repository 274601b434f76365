package main

import (
	"fmt"
	"io"
	"math"

	"github.com/firnid/firn/server/internal/ids/inspect"
)

// A plan has the flags of layout --plan.
type plan struct {
	inspect.Needs
	bits int // 0: 63 and 53
}

func (p *plan) print(w io.Writer, l look, asJSON bool) error {
	for _, need := range []struct {
		name string
		v    float64
		most float64
	}{{"years", p.Years, 1e6}, {"nodes", p.Nodes, 1 << 48}, {"rate", p.Rate, 1e12}} {
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
		splits := p.Splits(total)
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
			layout, err := s.Layout()
			if err != nil {
				return err
			}
			if asJSON {
				fmt.Fprintf(w, "%s\n", inspect.AppendLayout(nil, layout))
				continue
			}
			t.add(count(layout.IDsPerSecond()), nodes(layout), year(layout.Last()),
				fmt.Sprint(s.Time), fmt.Sprint(s.Node), fmt.Sprint(s.Seq), layout.String())
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

// lacking shows by how many bits the plan falls short, and what would fit.
func (p *plan) lacking(w io.Writer, l look, total int) {
	least := p.Least()
	fmt.Fprintf(w, "%s\n", l.bold(bitsTitle(total)))
	fmt.Fprintf(w, "%s time %d, node %d and sequence %d are %d bits, %d too many\n", l.red("none fits:"), least.Time, least.Node, least.Seq, least.Total(), least.Total()-total)
	say := func(what string, left int, text func(int) string) {
		if left >= 0 {
			fmt.Fprintf(w, "  %s\n", what+" "+text(left))
		}
	}
	say("with these years and nodes:", total-least.Time-least.Node, func(n int) string { return count(math.Exp2(float64(n))*1000) + " IDs/s per node" })
	say("with these years and this rate:", total-least.Time-least.Seq, func(n int) string { return power(n) + " nodes" })
	say("with these nodes and this rate:", total-least.Node-least.Seq, func(n int) string {
		return inspect.Span(math.Exp2(float64(n))/1000) + " from 2026 on"
	})
}
