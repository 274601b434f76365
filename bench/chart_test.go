package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func chartReport() *Report {
	r := &Report{Machine: Machine{Go: "go1.26", OS: "linux", Arch: "amd64", CPU: "A & B <fast>", CPUs: 2}}
	add := func(name string, v float64, unit, bound string) {
		f := newFigure(name, spread{v, v, v, 3}, unit)
		f.Bound = bound
		r.Figures = append(r.Figures, f)
	}
	add("burst-100k/slow", 234, "ms", cap12)
	add("burst-100k/firn", 1.2, "ms", cap12)
	add("burst-100k/slow:firn", 195, "x", "")
	add("burst-1k/slow", 1, "ms", "")
	add("threads/firn/1", 10, "ns", "")
	add("threads/firn/2", 24, "ns", "")
	add("threads/firn:alone", 2.4, "x", "")
	add("threads/half/1", 9, "ns", "")
	return r
}

// The output is XML, with a bar for every figure, longer for larger ones, and
// its number.
func TestChart(t *testing.T) {
	c := burstChart(chartReport())
	if len(c.rows) != 2 || c.rows[0].label != "firn" || !c.rows[0].ours || c.rows[1].label != "slow" || c.rows[1].note != "cap 244 ns an ID" {
		t.Fatalf("rows %+v, want firn and slow, the least first", c.rows)
	}
	svg := c.svg()
	var widths []float64
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the chart is no XML: %v\n%s", err, svg)
		}
		e, ok := token.(xml.StartElement)
		if !ok || e.Name.Local != "rect" {
			continue
		}
		a := make(map[string]string)
		for _, attr := range e.Attr {
			a[attr.Name.Local] = attr.Value
		}
		if a["x"] == strconv.Itoa(chartLabels) {
			w, err := strconv.ParseFloat(a["width"], 64)
			if err != nil || w <= 0 || w > chartWidth-chartLabels-chartValues {
				t.Errorf("a bar has the width %q", a["width"])
			}
			widths = append(widths, w)
		}
	}
	if len(widths) != 2 || widths[0] >= widths[1] {
		t.Errorf("bars of the widths %v, want two, the second longer", widths)
	}
	for _, want := range []string{"1.20 ms", "234 ms", "A &amp; B &lt;fast&gt;", "prefers-color-scheme: dark", "cap 244 ns an ID", `role="img"`, "firn 1.20, slow 234."} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the chart does not have %q:\n%s", want, svg)
		}
	}
	if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
		t.Errorf("the chart has a number that is none:\n%s", svg)
	}
}

func TestThreadsChart(t *testing.T) {
	c := threadsChart(chartReport())
	if len(c.rows) != 1 || c.rows[0].label != "firn" || c.rows[0].values[0] != 10 || c.rows[0].values[1] != 24 {
		t.Errorf("rows %+v, want firn alone: the other has no second figure", c.rows)
	}
}

func TestDecades(t *testing.T) {
	for _, c := range []struct {
		values    []float64
		low, high int
	}{
		{nil, 0, 1}, {[]float64{0}, 0, 1}, {[]float64{5}, 0, 1}, {[]float64{1}, -1, 0}, {[]float64{0.04, 52}, -2, 2}, {[]float64{100, 1000}, 1, 3},
	} {
		ch := chart{rows: []chartRow{{values: c.values}}}
		if low, high := ch.decades(); low != c.low || high != c.high {
			t.Errorf("decades of %v are %d, %d, want %d, %d", c.values, low, high, c.low, c.high)
		}
	}
	for d, want := range map[int]string{-2: "0.01", -1: "0.1", 0: "1", 3: "1000"} {
		if got := axis(d); got != want {
			t.Errorf("axis(%d) = %q, want %q", d, got, want)
		}
	}
}

// A saved report can be drawn and printed again.
func TestFrom(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.json")
	var b bytes.Buffer
	if err := chartReport().writeJSON(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	if err := command(t.Context(), []string{"-from", file, "-svg", filepath.Join(dir, "charts")}, &out, &log); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "burst-100k/slow:firn") {
		t.Errorf("the table is %s", &out)
	}
	for _, name := range []string{"burst.svg", "threads.svg"} {
		if text, err := os.ReadFile(filepath.Join(dir, "charts", name)); err != nil || !bytes.HasPrefix(text, []byte("<svg ")) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := command(t.Context(), []string{"-from", file}, &out, &log); err == nil {
		t.Error("a file that is no report: no error")
	}
}
