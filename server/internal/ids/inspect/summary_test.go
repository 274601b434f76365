package inspect

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// TestSummaryAnomalies wants what a column should not have to be counted.
func TestSummaryAnomalies(t *testing.T) {
	s := NewSummary(Options{}, testNow)
	for _, text := range []string{
		"1212092628029698048", "1212092628029698048", "1212092627329698048", "1212092628029698000", "1212092632223002624",
	} {
		must.Do(t, s.Add(text))
	}
	if err := s.Add("foo"); err == nil {
		t.Error("foo is an ID")
	}
	if got := s.Report(); got.Name != "twitter" || got.Count != 5 || got.Repeats != 1 || got.Rounding.IDs != 1 || got.Rounding.Sure || got.Late != 1 {
		t.Errorf("%+v", got)
	}
	s = NewSummary(Options{}, testNow)
	for range 50 {
		must.Do(t, s.Add(textOf(firn.Decimal, firn.Raw.Append(nil, firn.ID(rand.Uint64()>>1)))))
	}
	if got := s.Report(); got.Known {
		t.Errorf("random numbers are %s", got.Name)
	}
}

// TestColumnKinds: the numbers of a column are of one kind. Each alone may be
// random or a Unix time, and all together are of the layout that has them all.
func TestColumnKinds(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	instagram := firn.MustParseLayout("instagram")
	column := func(n int, from, to string) (texts []string) {
		a, _ := time.Parse(time.DateOnly, from)
		b, _ := time.Parse(time.DateOnly, to)
		for range n {
			at := a.Add(time.Duration(r.Int64N(int64(b.Sub(a)))))
			texts = append(texts, textOf(firn.Decimal, compose(t, instagram, firn.Parts{Time: at, Node: r.Uint64N(8192), Seq: r.Uint64N(1024)})))
		}
		return texts
	}
	numbers := func(n int, next func() uint64) (texts []string) {
		for range n {
			texts = append(texts, strconv.FormatUint(next(), 10))
		}
		return texts
	}
	now := uint64(testNow.UnixNano())
	random := func() uint64 { return r.Uint64() >> 1 }
	for _, tt := range []struct {
		name  string
		texts []string
		want  string // "" for no known layout
	}{
		{"media IDs of public posts", []string{"2649687212427593046", "1617617172955424949", "2333801945053309473"}, "instagram"},
		{"11 of Instagram", column(11, "2012-01-01", "2026-11-01"), "instagram"},
		{"1000 of Instagram", column(1000, "2012-01-01", "2026-11-01"), "instagram"},
		{"1000 recent ones", column(1000, "2020-01-01", "2026-11-01"), "instagram"},
		{"100 of a day", column(100, "2026-11-18", "2026-11-19"), "instagram"},
		{"and Unix times in nanoseconds", slices.Concat(column(20, "2012-01-01", "2015-01-01"), column(20, "2016-06-01", "2018-01-01"), column(20, "2020-01-01", "2026-01-01")), "instagram"},
		{"random numbers", numbers(12, random), ""},
		{"Unix times in nanoseconds", numbers(100, func() uint64 { return now - r.Uint64N(2.5e17) }), ""},
		{"Unix times in milliseconds", numbers(100, func() uint64 { return (now - r.Uint64N(2.5e17)) / 1e6 }), ""},
		{"words", []string{"CTFlHsmpEVW", "dQw4w9WgXcQ", "Iphone15Pro", "BxYzAbCdEfG", "CqWeRtYuIoP", "information"}, ""},
		{"words of one case", []string{"information", "newsletters", "subscribers", "replacement", "electricity", "comfortable"}, ""},
	} {
		s := NewSummary(Options{}, testNow)
		for _, text := range tt.texts {
			if err := s.Add(text); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		if got := s.Report(); got.Name != tt.want || tt.want != "" && got.Fits != len(tt.texts) {
			t.Errorf("%s: %q fits %d of %d, want %q", tt.name, got.Name, got.Fits, got.Count, tt.want)
		}
	}
}

// TestSummaryFuture prefers a reading without IDs ahead of the clock, and keeps
// one with a few.
func TestSummaryFuture(t *testing.T) {
	for name, ids := range map[string][]firn.ID{
		// 42, 10 and 12 bits since 2014-11-20, on workers 1 and 2: in 2027 by discord.
		"twitter": {809732317269463040, 940279780807282688, 1073107179243839488, 1147134998432714752, 1460522913454104576, 1572802100277022720, 1591218366540943360},
		// 41, 13 and 10 bits since 2011-08-24: one of five in the future by snowcast.
		"instagram": {2640283214429553664, 2805917090484062209, 2833542833036592129, 3647409486143947778, 3751282329314658307},
		"default":   append(slices.Repeat([]firn.ID{117398000000000000}, 60), 117413923636674560), // 4 minutes ahead, and most were an hour ago
	} {
		s := NewSummary(Options{}, testNow)
		for _, id := range ids {
			must.Do(t, s.Add(id.String()))
		}
		if got := s.Report(); got.Name != name {
			t.Errorf("the column is %s, in the future %d, want %s", got.Name, got.Future, name)
		}
	}
}

// TestSummarySmall sets the small numbers of an older counter aside, with a
// layout and without, and only beside greater IDs.
func TestSummarySmall(t *testing.T) {
	for _, o := range []Options{{}, {Layout: firn.MustParseLayout("twitter")}} {
		s := NewSummary(o, testNow)
		for n := range 1000 {
			must.Do(t, s.Add(firn.ID(n+1).String()))
		}
		if got := s.Report(); got.Known != !o.Layout.IsZero() || got.Known && got.Fits != 1000 || got.Count != 1000 {
			t.Errorf("by layout %q, 1,000 small numbers alone: %+v", o.Layout, got)
		}
		for range 5 {
			must.Do(t, s.Add("1212092628029698048"))
		}
		if got := s.Report(); got.Name != "twitter" || got.Small != 1000 || got.Fits != 5 || got.First.Year() != 2019 {
			t.Errorf("by layout %q, above 1,000 small numbers: %+v", o.Layout, got)
		}
	}
}
