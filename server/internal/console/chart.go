package console

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A chart draws rates with a logarithmic axis, so that a burst does not flatten
// the rest. It is SVG in units of its own, which the page stretches; labels
// stand beside it.
type chart struct {
	Line, Grid   string // SVG paths
	Wide, High   int
	Label        string   // for screen readers
	Rates        []string // labels of the vertical axis, from the top down
	Times        []string // labels of the horizontal axis
	Peak, PeakAt string   // empty if there was no ID
}

// height is where a rate lies on the axis: 0, 1, 10, 100 and so on have equal
// distances.
func height(rate float64) float64 {
	if rate <= 1 {
		return max(rate, 0)
	}
	return 1 + math.Log10(rate)
}

const (
	chartWide = 1000
	rowHigh   = 20 // of a power of ten
	sparkWide = 120
	sparkHigh = 24
	perMinute = 6 // samples that a sparkline draws as one
)

// newChart draws the rates between consecutive times.
func newChart(times []time.Time, rates []float64) chart {
	peak := 0.0
	if len(rates) > 0 {
		peak = slices.Max(rates)
	}
	rows := max(1, int(math.Ceil(height(peak))))
	c := chart{Wide: chartWide, High: rows * rowHigh, Label: "no IDs"}
	for row := range rows + 1 {
		label := "0"
		if power := rows - row - 1; power >= 0 {
			label = "1" + strings.Repeat("0", power%3) + []string{"", " k", " M", " G", " T"}[min(power/3, 4)]
		}
		c.Rates = append(c.Rates, label)
		c.Grid += fmt.Sprintf("M0 %dH%d", row*rowHigh, chartWide)
	}
	if len(rates) < 2 {
		return c
	}
	for _, t := range []time.Time{times[0], times[len(times)/2], times[len(times)-1]} {
		c.Times = append(c.Times, clock(t))
	}
	c.draw(rates, float64(rows))
	if peak > 0 {
		c.Peak, c.PeakAt = count(peak), clock(times[slices.Index(rates, peak)+1])
		c.Label = fmt.Sprintf("up to %s IDs per second, at %s", c.Peak, c.PeakAt)
	}
	return c
}

// newSpark draws rates small, without axes: a point for each minute.
func newSpark(rates []float64) chart {
	var minutes []float64
	for minute := range slices.Chunk(rates[len(rates)%perMinute:], perMinute) {
		minutes = append(minutes, slices.Max(minute))
	}
	c := chart{Wide: sparkWide, High: sparkHigh, Label: "no IDs in the last hour"}
	if len(minutes) < 2 {
		return c
	}
	most := slices.Max(minutes)
	if most > 0 {
		c.Label = fmt.Sprintf("up to %s IDs per second in the last hour", count(most))
	}
	c.draw(minutes, height(most))
	return c
}

// draw sets Line. top is the height of the upper edge.
func (c *chart) draw(rates []float64, top float64) {
	for i, r := range rates {
		y := float64(c.High - 1)
		if top > 0 {
			y -= height(r) / top * float64(c.High-2)
		}
		c.Line += fmt.Sprintf("%c%d %.1f", "ML"[min(i, 1)], i*c.Wide/(len(rates)-1), y)
	}
}
