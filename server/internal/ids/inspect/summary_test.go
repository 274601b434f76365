package inspect

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firnid/firn"
)

// TestSummary makes columns of IDs. Single IDs of some layouts are ambiguous; a
// column of a hundred is not.
func TestSummary(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, name := range []string{"default", "hazelcast", "twitter", "discord", "sonyflake", "flake-idgen", "uuidv7", "ulid"} {
		l := firn.MustParseLayout(name)
		s := NewSummary(Options{}, testNow)
		begin := testNow.Add(-100 * 24 * time.Hour).Truncate(time.Second)
		for i := range 100 {
			p := firn.Parts{Time: begin.Add(time.Duration(i) * (time.Hour + 10*time.Millisecond)), Node: uint64(i % 3), Seq: fewSmall(r)}
			switch name {
			case "hazelcast", "discord":
				p.Seq = r.Uint64N(l.MaxSeq() + 1)
			case "sonyflake":
				p.Node = uint64(0x1234 + i%3)
			}
			if err := s.Add(textOf(l.Format(), compose(t, l, p))); err != nil {
				t.Fatal(err)
			}
		}
		got := s.Report()
		if !got.Known || got.Name != name || got.Count != 100 || got.Fits != 100 || !got.First.Equal(begin) ||
			!got.Last.Equal(begin.Add(99*(time.Hour+10*time.Millisecond))) || got.Nodes != 3 || got.Late+got.Future+got.Repeats+got.Rounded != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

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
