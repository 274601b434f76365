package inspect

import (
	"math/rand/v2"
	"testing"

	"github.com/firnid/firn"
)

// TestSummaryAnomalies wants what a column should not have to be counted.
func TestSummaryAnomalies(t *testing.T) {
	s := NewSummary(Options{}, testNow)
	for _, text := range []string{
		"1212092628029698048", "1212092628029698048", "1212092627329698048", "1212092628029698000", "1212092632223002624",
	} {
		if err := s.Add(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Add("foo"); err == nil {
		t.Error("foo is an ID")
	}
	if got := s.Report(); got.Name != "twitter" || got.Count != 5 || got.Repeats != 1 || got.Rounded != 1 || got.Late != 1 {
		t.Errorf("%+v", got)
	}
	s = NewSummary(Options{}, testNow)
	for range 50 {
		if err := s.Add(textOf(firn.Decimal, firn.Raw.Append(nil, firn.ID(rand.Uint64()>>1)))); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Report(); got.Known {
		t.Errorf("random numbers are %s", got.Name)
	}
}
