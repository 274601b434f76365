package main

import (
	"strings"
	"testing"
)

func TestFillIn(t *testing.T) {
	r := chartReport()
	r.Figures = append(r.Figures, newFigure("next/firn:add-counter", spread{3, 2, 4, 5}, "x"), newFigure("next/slow", spread{244, 243, 245, 5}, "ns"))
	const text = "before\n<!-- bench: targets -->\nold\n<!-- end -->\nbetween\n<!-- bench: peers -->\n<!-- end -->\nafter\n"
	got, err := fillIn(r, text)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"before\n<!-- bench: targets -->\n| figure |", "| `next/firn:add-counter` | 3 x (2–4) | ≤ 1.25 | **short** | Next, one goroutine |\n",
		"<!-- end -->\nbetween\n<!-- bench: peers -->\n", "| slow | 244 ns |  |  | 234 ms |  |  |  |\n<!-- end -->\nafter\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not have %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "old") {
		t.Errorf("the old table is there:\n%s", got)
	}
	again, err := fillIn(r, got)
	if err != nil || again != got {
		t.Errorf("filled in again it is another, %v:\n%s", err, again)
	}
	for _, bad := range []string{"nothing", "<!-- bench: other -->\n<!-- end -->"} {
		if _, err := fillIn(r, bad); err == nil {
			t.Errorf("fillIn(%q): no error", bad)
		}
	}
}

// Every table can be made from an empty report.
func TestDocuments(t *testing.T) {
	for name, table := range documents() {
		if s := table(&Report{}); !strings.HasSuffix(s, "\n") {
			t.Errorf("the table %s of nothing is %q", name, s)
		}
	}
}
