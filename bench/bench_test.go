package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		want    spread
	}{
		{nil, spread{}},
		{[]float64{math.NaN(), math.Inf(1)}, spread{}},
		{[]float64{7}, spread{7, 7, 7, 1}},
		{[]float64{3, 1, 2}, spread{2, 1.5, 2.5, 3}},
		{[]float64{4, 1, 3, 2}, spread{2.5, 1.75, 3.25, 4}},
		{[]float64{5, math.NaN(), 1, 2, 3, 4}, spread{3, 2, 4, 5}},
	} {
		before := append([]float64(nil), c.samples...)
		if got := spreadOf(c.samples); got != c.want {
			t.Errorf("spreadOf(%v) = %v, want %v", c.samples, got, c.want)
		}
		for i := range before {
			if before[i] != c.samples[i] && !math.IsNaN(before[i]) {
				t.Errorf("spreadOf has changed its samples: %v, were %v", c.samples, before)
			}
		}
	}
}

func TestRatios(t *testing.T) {
	got := ratios([]float64{2, 9, 10, 1}, []float64{1, 0, 4})
	if len(got) != 2 || got[0] != 2 || got[1] != 2.5 {
		t.Errorf("ratios = %v, want [2 2.5]: those without a partner, or with none to divide by, left out", got)
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 1: "1", 2.5: "2.50", 9.999: "10.0", 12.34: "12.3", 99.96: "100", 123.4: "123", 4096: "4096",
		0.05: "0.05", 0.004: "0.004", 0.00123: "0.0012", 1e6 + 0.4: "1000000", -3.14159: "-3.14",
	} {
		if got := number(x); got != want {
			t.Errorf("number(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		name           string
		value          float64
		n              int
		target, status string
	}{
		{"next/firn:add-counter", 1.25, 9, "<=1.25", "ok"},
		{"next/firn:add-counter", 1.26, 9, "<=1.25", "short"},
		{"resp/p100/firn:redis", 1.8, 9, ">=1.80", "ok"},
		{"resp/p100/firn:redis", 1.79, 9, ">=1.80", "short"},
		{"next/firn/allocs", 0, 0, "<=0", "short"}, // nothing was measured
		{"next/somebody", 1, 9, "-", "-"},
	} {
		f := newFigure(c.name, spread{c.value, c.value, c.value, c.n}, "x")
		if f.Target != c.target || f.Status != c.status {
			t.Errorf("%s of %v: %s %s, want %s %s", c.name, c.value, f.Target, f.Status, c.target, c.status)
		}
	}
	for name, a := range aims() {
		if a.row == "" {
			t.Errorf("the target of %s does not say where it comes from", name)
		}
	}
}

// Each line has at least five words for programs; the rest is for people.
func TestTable(t *testing.T) {
	r := &Report{}
	r.Figures = []Figure{
		newFigure("next/firn:add-counter", spread{1.04, 1.03, 1.05, 100}, "x"),
		newFigure("next/peer", spread{244, 240, 250, 12}, "ns"),
		newFigure("burst-100k/bwmarrin:firn", spread{14, 14, 14, 1}, "x"),
	}
	r.Figures[1].Bound, r.Figures[1].Note = "244 ns", "a note"
	var b bytes.Buffer
	if err := r.writeTable(&b); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"name value unit target ok|short quartiles, own bound, notes",
		"next/firn:add-counter 1.04 x <=1.25 ok 1.03..1.05",
		"next/peer 244 ns - - 240..250; bound 244 ns; a note",
		"burst-100k/bwmarrin:firn 14 x >=15 short",
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), &b)
	}
	for i, line := range lines {
		if got := strings.Join(strings.Fields(line), " "); got != want[i] {
			t.Errorf("line %d is %q, want %q", i, got, want[i])
		}
	}
	if got := r.short(); got != 1 {
		t.Errorf("short() = %d, want 1", got)
	}
}

func TestJSON(t *testing.T) {
	r := &Report{Machine: Machine{CPUs: 2}, Begin: time.Unix(1, 0).UTC(), Figures: []Figure{newFigure("a", spread{1, 2, 3, 4}, "ns")}, Skipped: []Skip{{"b", "why"}}}
	var b bytes.Buffer
	if err := r.writeJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Figures) != 1 || got.Figures[0] != r.Figures[0] || len(got.Skipped) != 1 || got.Skipped[0] != r.Skipped[0] || got.Machine != r.Machine || !got.Begin.Equal(r.Begin) {
		t.Errorf("read %+v, want %+v", got, r)
	}
}

func TestBounded(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	for name, c := range map[string]struct {
		f    func(context.Context)
		want string
	}{
		"ends":   {func(context.Context) {}, ""},
		"panics": {func(context.Context) { panic("oh") }, "it panicked: oh"},
		"fails":  {func(context.Context) { failed(errors.New("no ID")) }, "no ID"},
		"faults": {func(context.Context) { var p *Report; p.Lasted = 1 }, "it panicked: runtime error: invalid memory address or nil pointer dereference"},
		"leaves": {func(context.Context) { runtime.Goexit() }, "it ended its goroutine"},
		"stalls": {func(context.Context) { <-hold }, "it stalled: context deadline exceeded"},
	} {
		most := time.Minute
		if name == "stalls" {
			most = time.Millisecond
		}
		err := bounded(t.Context(), most, c.f)
		if got := errText(err); got != c.want {
			t.Errorf("bounded of what %s = %q, want %q", name, got, c.want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Batches count only if the other thread was working the whole time.
func TestCovered(t *testing.T) {
	const us = time.Microsecond
	a := []span{{0, 10 * us}, {10 * us, 20 * us}, {20 * us, 30 * us}, {30 * us, 90 * us}, {90 * us, 100 * us}}
	other := []span{{0, 12 * us}, {13 * us, 25 * us}, {40 * us, 50 * us}, {85 * us, 130 * us}}
	got := covered(a, other, 50*us)
	// The first two lie within the other's first two, which are adjacent.
	// During the third the other thread stood still, the fourth took too long,
	// and the fifth lies within one of 45 µs.
	if len(got) != 3 || got[0] != 10_000.0/contendBatch {
		t.Errorf("covered = %v, want three of %v", got, 10_000.0/contendBatch)
	}
	if got := covered(a, nil, time.Second); got != nil {
		t.Errorf("covered by nobody = %v, want none", got)
	}
	if got := covered(a, []span{{0, time.Second}}, 500*time.Millisecond); got != nil {
		t.Errorf("covered by a batch that was interrupted = %v, want none", got)
	}
}

// Every subject does its work, so that no figure measures a failure.
func TestSubjects(t *testing.T) {
	all := append(baselines(), atomicAdd(), addCounter(), casAdd(), mutexAdd(),
		firnNext("next", wideLayout, farAhead), firnTryNext("trynext", wideLayout, farAhead), firnNext128("next128", "uuidv7", farAhead),
		firnFill("fill", wideLayout, farAhead, 64), firnBatch("batch", wideLayout, farAhead, 1000),
		firnPrefetch("prefetch", 1000, false), firnPrefetch("prefetch-ahead", 1000, true))
	if c, ok := firnCursor("cursor", wideLayout, farAhead); ok {
		all = append(all, c)
	}
	for _, make := range peers() {
		all = append(all, make())
	}
	for _, s := range all {
		if err := bounded(t.Context(), time.Minute, func(context.Context) { s.run(1); s.run(3); s.run(100) }); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

func TestSkipSaysWhy(t *testing.T) {
	var log bytes.Buffer
	ctx, cancel := context.WithCancelCause(t.Context())
	r := &run{ctx: ctx, report: &Report{}, log: &log}
	r.part("breaks", func() { panic("oh") })
	cancel(errors.New("enough"))
	r.part("late", func() { t.Error("a part ran after the end") })
	want := []Skip{{"breaks", "it panicked: oh"}, {"late", "the run ended: enough"}}
	if len(r.report.Skipped) != 2 || r.report.Skipped[0] != want[0] || r.report.Skipped[1] != want[1] {
		t.Errorf("skipped %v, want %v", r.report.Skipped, want)
	}
	if !strings.Contains(log.String(), "SKIPPED: breaks: it panicked: oh") {
		t.Errorf("the log is %q", &log)
	}
}

// A target without a figure is reported.
func TestMissing(t *testing.T) {
	r := &run{ctx: t.Context(), report: &Report{}, log: new(bytes.Buffer), only: regexp.MustCompile("^a")}
	r.add("a1", one(1), "x", Figure{})
	r.missing(map[string]aim{"a1": atMost(1, "row"), "a2": atMost(1, "row"), "b": atMost(1, "row")})
	if len(r.report.Skipped) != 1 || r.report.Skipped[0].Name != "a2" {
		t.Errorf("missing: %v, want a2", r.report.Skipped)
	}
}

func TestVariant(t *testing.T) {
	r := &run{ctx: t.Context(), report: &Report{}, log: new(bytes.Buffer)}
	r.takeVariant("purego", &Report{Figures: []Figure{newFigure("next/firn:add-counter", spread{1.2, 1.1, 1.3, 9}, "x")}, Skipped: []Skip{{"x", "y"}}})
	f, ok := r.report.find("purego:next/firn:add-counter")
	if !ok || f.Value != 1.2 || f.Target != "<=1.30" || f.Status != "ok" || f.Low != 1.1 || f.High != 1.3 || f.Samples != 9 {
		t.Errorf("figure %+v", f)
	}
	if len(r.report.Skipped) != 1 || r.report.Skipped[0].Name != "purego:x" {
		t.Errorf("skipped %v", r.report.Skipped)
	}
	r.only = regexp.MustCompile("^next/b$|^purego:next/c")
	r.takeVariant("purego", &Report{Figures: []Figure{newFigure("next/a", one(1), "ns"), newFigure("next/b", one(1), "ns"), newFigure("next/c", one(1), "ns")}})
	if n := len(r.report.Figures); n != 3 || r.report.Figures[1].Name != "purego:next/b" || r.report.Figures[2].Name != "purego:next/c" {
		t.Errorf("figures %+v, want those that were asked for, by either name", r.report.Figures)
	}
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-run", "("}, "-run: error parsing regexp"},
		{[]string{"more"}, `unexpected argument "more"`},
		{[]string{"-variant", "a=b"}, "want NAME=REGEXP=PROGRAM"},
		{[]string{"-core", "-run", "^nothing$"}, ""},
	} {
		var out, log bytes.Buffer
		err := command(t.Context(), c.args, &out, &log)
		if got := errText(err); !strings.HasPrefix(got, c.want) && !strings.Contains(got, c.want) || c.want == "" && err != nil {
			t.Errorf("bench %v: %q, want %q", c.args, got, c.want)
		}
	}
}

// Disturbed samples count only if there are too few others, and are reported.
func TestCollector(t *testing.T) {
	var c collector
	c.add(1, 10, true)
	c.add(9, 90, false)
	c.add(2, 20, true)
	if s := c.of(2); len(s.a) != 2 || s.a[1] != 2 || s.b[1] != 20 || s.note() != "" {
		t.Errorf("of(2) = %+v, want the two quiet pairs", s)
	}
	if s := c.of(3); len(s.a) != 3 || s.a[2] != 9 || s.b[2] != 90 || s.note() != "busy machine" {
		t.Errorf("of(3) = %+v, want all three", s)
	}
	c.add(7, 7, false)
	if s := c.least(3); len(s.a) != 3 || s.a[2] != 7 || s.note() != "busy machine" {
		t.Errorf("least(3) = %+v, want the two quiet pairs and the shorter of the others", s)
	}
	if s := c.least(2); len(s.a) != 2 || s.note() != "" {
		t.Errorf("least(2) = %+v, want the two quiet pairs", s)
	}
	c = collector{}
	c.add(1, 1, true)
	if s := c.of(3); len(s.a) != 1 || s.note() != "" {
		t.Errorf("of(3) = %+v, want the only one, which was quiet", s)
	}
}

// On a machine that others use, the figures of servers have a note.
func TestBusy(t *testing.T) {
	r := &run{ctx: t.Context(), report: &Report{}, log: new(bytes.Buffer), busy: "busy machine, load 30"}
	r.add("a", one(1), "x", Figure{Note: "a note"})
	r.add("b", one(1), "x", Figure{})
	r.add("c", one(1), "us", Figure{}) // of a processor
	if note := r.report.Figures[2].Note; note != "" {
		t.Errorf("the note of processor time is %q, want none", note)
	}
	if a, b := r.report.Figures[0].Note, r.report.Figures[1].Note; a != "a note; busy machine, load 30" || b != "busy machine, load 30" {
		t.Errorf("notes %q and %q", a, b)
	}
}

func TestLeastBurst(t *testing.T) {
	for n, want := range map[int]float64{1: 0, 4096: 0, 8192: 0, 8193: 1, 100_000: 23} {
		if got := leastBurst(n); got != want {
			t.Errorf("leastBurst(%d) = %v, want %v", n, got, want)
		}
	}
}
