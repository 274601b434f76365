package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
)

// example is an ID that the README shows.
const example firn.ID = 117934331481448448

// layoutPicture draws the bits of the default layout, what each field holds and
// an example.
func layoutPicture() ([]byte, error) {
	layout := firn.Default()
	parts, err := layout.Decompose(example)
	if err != nil {
		return nil, err
	}
	notes := map[string][2]string{
		"zero": {"", ""},
		"time": {
			fmt.Sprintf("%s ticks since %s, until %s", unit(layout.Unit()), layout.Epoch().Format(time.DateOnly), layout.Last().Format(time.DateOnly)),
			parts.Time.Format("2006-01-02 15:04:05.000"),
		},
		"node": {thousands(layout.MaxNode()+1) + " generators", strconv.FormatUint(parts.Node, 10)},
		"seq":  {thousands(layout.MaxSeq()+1) + " a tick", strconv.FormatUint(parts.Seq, 10)},
	}
	names := map[string]string{"zero": "0", "time": "time", "node": "node ID", "seq": "sequence"}

	const left, full, least = 12, 736, 24
	pieces := layout.Pieces()
	bits, spare := 0, full
	for _, p := range pieces {
		bits += p.Width
		if p.Width == 1 {
			bits, spare = bits-1, spare-least
		}
	}
	var words []string
	for _, p := range pieces {
		words = append(words, fmt.Sprintf("%s: %d bits, %s", names[p.Field], p.Width, notes[p.Field][0]))
	}
	c := begin(left+full+left, 158, "The bits of an ID in the default layout", strings.Join(words, "; ")+".")
	x := left
	for _, p := range pieces {
		width := least
		if p.Width > 1 {
			width = spare * p.Width / bits
		}
		middle := x + width/2
		if p.Width > 1 {
			c.text("soft", x+10, 18, strconv.Itoa(p.Pos+p.Width-1))
		}
		c.text("soft", x+width-10, 18, strconv.Itoa(p.Pos))
		c.box(p.Field, x, 26, width, 46)
		c.text("title", middle, 45, names[p.Field])
		if p.Width > 1 {
			c.text("", middle, 63, fmt.Sprintf("%d bits", p.Width))
		}
		c.text("soft", middle, 91, notes[p.Field][0])
		c.text("code", middle, 122, notes[p.Field][1])
		x += width
	}
	c.text("code soft", left+full/2, 146, "= ID "+example.String())
	return c.end(), nil
}

// unit formats the length of a tick.
func unit(d time.Duration) string {
	if d == time.Millisecond {
		return "millisecond"
	}
	return d.String()
}

// thousands formats a number with commas.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
