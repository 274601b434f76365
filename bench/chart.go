package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A chart is a horizontal bar chart with a logarithmic scale, because the
// figures of peers differ by orders of magnitude.
type chart struct {
	title  string
	unit   string
	series []string // one or two: the names of a row's values
	rows   []chartRow
	foot   string
}

type chartRow struct {
	label  string
	values []float64 // one for each series
	note   string
	ours   bool
}

// The dimensions of the charts, in pixels.
const (
	chartWidth  = 760
	chartLabels = 150 // width of the names
	chartValues = 190 // width of the values after the bars
	chartTop    = 64
	chartFoot   = 44
	barHeight   = 12
	barGap      = 2
	rowGap      = 10
)

// burstChart shows how long it takes to get 100,000 IDs.
func burstChart(r *Report) chart {
	c := chart{title: "100,000 IDs from idle, one goroutine", unit: "ms", series: []string{"milliseconds, less is better"}, foot: r.Machine.String()}
	for _, f := range r.Figures {
		name, ok := strings.CutPrefix(f.Name, "burst-100k/")
		if ok && !strings.ContainsAny(name, ":/") {
			c.rows = append(c.rows, chartRow{label: name, values: []float64{f.Value}, note: boundOf(f), ours: strings.HasPrefix(name, "firn")})
		}
	}
	c.sort()
	return c
}

// threadsChart shows the cost of a call when two threads make IDs at once.
func threadsChart(r *Report) chart {
	c := chart{title: "An ID, with one thread and with two at the same moment", unit: "ns",
		series: []string{"ns with one thread", "ns for each of two"}, foot: r.Machine.String()}
	for _, f := range r.Figures {
		name, ok := strings.CutPrefix(f.Name, "threads/")
		if name, ok = cutSuffix(name, "/1", ok); !ok {
			continue
		}
		if two, ok := r.find("threads/" + name + "/2"); ok {
			c.rows = append(c.rows, chartRow{label: name, values: []float64{f.Value, two.Value}, ours: strings.HasPrefix(name, "firn")})
		}
	}
	c.sort()
	return c
}

func cutSuffix(s, suffix string, ok bool) (string, bool) {
	before, found := strings.CutSuffix(s, suffix)
	return before, ok && found
}

// boundOf returns a short form of what a format allows.
func boundOf(f Figure) string {
	before, _, _ := strings.Cut(f.Bound, ",")
	if before == "" || !strings.HasSuffix(before, "s") {
		return ""
	}
	return "cap " + before + " an ID"
}

// sort sorts the rows by their last value, in ascending order.
func (c *chart) sort() {
	slices.SortStableFunc(c.rows, func(a, b chartRow) int {
		x, y := a.values[len(a.values)-1], b.values[len(b.values)-1]
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
}

// decades returns the exponents of ten at the ends of the scale.
func (c *chart) decades() (low, high int) {
	least, most := math.Inf(1), 0.0
	for _, row := range c.rows {
		for _, v := range row.values {
			if v > 0 {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	if most == 0 {
		return 0, 1
	}
	low, high = int(math.Floor(math.Log10(least))), int(math.Ceil(math.Log10(most)))
	if math.Pow10(low) > 0.8*least { // otherwise the smallest bar would have no length
		low--
	}
	return low, max(high, low+1)
}

// svg draws the chart. Its colours follow the reader's system setting, light or
// dark, and every bar has its number beside it.
func (c *chart) svg() []byte {
	low, high := c.decades()
	plot := float64(chartWidth - chartLabels - chartValues)
	at := func(v float64) float64 {
		if v <= 0 {
			return 0
		}
		return math.Min(math.Max((math.Log10(v)-float64(low))/float64(high-low), 0), 1) * plot
	}
	perRow := len(c.series)*(barHeight+barGap) + rowGap
	height := chartTop + perRow*len(c.rows) + chartFoot
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d">`+"\n", chartWidth, height, chartWidth, height)
	fmt.Fprintf(&b, "<title id=\"t\">%s</title>\n<desc id=\"d\">%s</desc>\n", escape(c.title), escape(c.describe()))
	b.WriteString(`<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-size: 15px; font-weight: 600; }
.soft { fill: #59636e; }
.back { fill: #ffffff; }
.grid { stroke: #d1d9e0; }
.a { fill: #8c959f; } .b { fill: #57606a; }
.ours.a { fill: #54aeff; } .ours.b { fill: #0969da; }
.name-ours { font-weight: 600; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .soft { fill: #9198a1; }
  .back { fill: #0d1117; }
  .grid { stroke: #3d444d; }
  .a { fill: #6e7681; } .b { fill: #b1bac4; }
  .ours.a { fill: #1f6feb; } .ours.b { fill: #79c0ff; }
}
</style>
`)
	fmt.Fprintf(&b, `<rect class="back" width="%d" height="%d"/>`+"\n", chartWidth, height)
	fmt.Fprintf(&b, `<text class="title" x="12" y="24">%s</text>`+"\n", escape(c.title))
	x := 12
	for i, name := range c.series {
		class := c.class(i, false)
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="36" width="10" height="10"/><rect class="%s" x="%d" y="36" width="10" height="10"/><text class="soft" x="%d" y="45">%s</text>`+"\n",
			class, x, c.class(i, true), x+12, x+28, escape(name))
		x += 48 + 7*len(name)
	}
	bottom := chartTop + perRow*len(c.rows)
	for d := low; d <= high; d++ {
		gx := chartLabels + at(math.Pow10(d))
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/><text class="soft" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			gx, chartTop-8, gx, bottom, gx, bottom+14, escape(strings.TrimSpace(axis(d)+" "+c.unit)))
	}
	for i, row := range c.rows {
		y := chartTop + i*perRow
		name := ""
		if row.ours {
			name = ` class="name-ours"`
		}
		fmt.Fprintf(&b, `<text%s x="%d" y="%d" text-anchor="end">%s</text>`+"\n", name, chartLabels-8, y+len(row.values)*(barHeight+barGap)/2+4, escape(row.label))
		for j, v := range row.values {
			by := y + j*(barHeight+barGap)
			w := at(v)
			fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/><text x="%.1f" y="%d">%s`,
				c.class(j, row.ours), chartLabels, by, w, barHeight, chartLabels+w+6, by+barHeight-2, escape(number(v)+" "+c.unit))
			if row.note != "" && j == len(row.values)-1 {
				fmt.Fprintf(&b, `<tspan class="soft"> · %s</tspan>`, escape(row.note))
			}
			b.WriteString("</text>\n")
		}
	}
	fmt.Fprintf(&b, `<text class="soft" x="12" y="%d">%s</text>`+"\n</svg>\n", height-10, escape(c.foot))
	return b.Bytes()
}

// class returns the CSS class of a bar of the i-th series: the last series is
// the strong one.
func (c *chart) class(i int, ours bool) string {
	class := "b"
	if i < len(c.series)-1 {
		class = "a"
	}
	if ours {
		class = "ours " + class
	}
	return class
}

// axis formats a power of ten.
func axis(d int) string {
	if d < 0 {
		return fmt.Sprintf("%.*f", -d, math.Pow10(d))
	}
	return fmt.Sprintf("%.0f", math.Pow10(d))
}

// describe describes the chart in words.
func (c *chart) describe() string {
	var all []string
	for _, row := range c.rows {
		var values []string
		for _, v := range row.values {
			values = append(values, number(v))
		}
		all = append(all, row.label+" "+strings.Join(values, " and "))
	}
	return strings.Join(c.series, " and ") + ": " + strings.Join(all, ", ") + "."
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // writing to a Builder cannot fail
	return b.String()
}

// draw writes the charts of a report into a directory, except charts without
// figures.
func draw(r *Report, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, c := range map[string]chart{"burst.svg": burstChart(r), "threads.svg": threadsChart(r)} {
		if len(c.rows) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), c.svg(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
