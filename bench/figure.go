package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// A Figure is one line of the table: a measured number.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"` // the median
	Unit  string  `json:"unit"`
	// Target is "<=2" or ">=15", and Status is "ok" or "short". Both are "-" if
	// there is no target.
	Target string `json:"target"`
	Status string `json:"status"`
	From   string `json:"from,omitempty"` // what the target is about
	// Low and High are the quartiles of Samples samples.
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Samples int     `json:"samples"`
	Bound   string  `json:"bound,omitempty"` // what the subject's own format allows
	Note    string  `json:"note,omitempty"`
}

// A Skip is something that was not measured, with the reason.
type Skip struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// A Report is the result of a run.
type Report struct {
	Machine Machine       `json:"machine"`
	Begin   time.Time     `json:"begin"`
	Lasted  time.Duration `json:"lasted_ns"`
	Figures []Figure      `json:"figures"`
	Skipped []Skip        `json:"skipped"`
}

// find returns the figure of that name.
func (r *Report) find(name string) (Figure, bool) {
	for _, f := range r.Figures {
		if f.Name == name {
			return f, true
		}
	}
	return Figure{}, false
}

// short returns how many figures miss their targets.
func (r *Report) short() (n int) {
	for _, f := range r.Figures {
		if f.Status == "short" {
			n++
		}
	}
	return n
}

// newFigure makes a figure and looks up its target.
func newFigure(name string, s spread, unit string) Figure {
	f := Figure{Name: name, Value: s.median, Unit: unit, Target: "-", Status: "-", Low: s.low, High: s.high, Samples: s.n}
	if a, ok := aims()[name]; ok {
		sign := ">="
		if a.most {
			sign = "<="
		}
		f.Target, f.From, f.Status = sign+number(a.bound), a.row, "short"
		if s.n > 0 && a.met(s.median) {
			f.Status = "ok"
		}
	}
	return f
}

// number formats a figure for people: three significant digits, or all digits
// of a whole number.
func number(x float64) string {
	switch abs := math.Abs(x); {
	case x == 0:
		return "0"
	case abs >= 99.95:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x == math.Trunc(x):
		return strconv.FormatFloat(x, 'f', 0, 64)
	case abs >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case abs >= 0.01:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// writeTable writes a line for each figure, with at least five words: name,
// value, unit, target, and ok or short. The quartiles, the subject's own bound,
// and notes follow.
func (r *Report) writeTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\tvalue\tunit\ttarget\tok|short\tquartiles, own bound, notes")
	for _, f := range r.Figures {
		var rest []string
		if f.Samples > 1 {
			rest = append(rest, number(f.Low)+".."+number(f.High))
		}
		if f.Bound != "" {
			rest = append(rest, "bound "+f.Bound)
		}
		if f.Note != "" {
			rest = append(rest, f.Note)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, number(f.Value), f.Unit, f.Target, f.Status, strings.Join(rest, "; "))
	}
	return t.Flush()
}

// writeSummary writes what was not measured, and how many figures are short.
func (r *Report) writeSummary(w io.Writer) {
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "SKIPPED: %s: %s\n", s.Name, s.Reason)
	}
	ok := 0
	for _, f := range r.Figures {
		if f.Status == "ok" {
			ok++
		}
	}
	fmt.Fprintf(w, "bench: %d figures, %d ok, %d short, %d skipped, %v; %s\n",
		len(r.Figures), ok, r.short(), len(r.Skipped), r.Lasted.Round(100*time.Millisecond), r.Machine)
}

// writeJSON writes the whole report as one JSON object.
func (r *Report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
