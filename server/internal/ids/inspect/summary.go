package inspect

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
)

// A Summary finds the layout that fits a column of IDs best, and what the
// column then holds. It must be made by NewSummary, and is not safe for
// concurrent use.
type Summary struct {
	options Options
	tallies map[string]*tally
	aside   map[string]*tally // of IDs that IsAside sets aside
	unknown [kinds]float64    // sums of how well IDs fit each kind of no layout
	last    string            // the previous ID

	digits                *Digits
	count, repeats, small int // as in Report
}

// A tally is a column read by one layout.
type tally struct {
	Report           // of this layout alone
	prior    float64 // how common its IDs are
	weight   float64 // sum of how well IDs fit it
	flat     float64 // the same, if all ages are equally probable
	previous time.Time

	nodes     map[uint64]struct{}
	plausible int     // number of IDs with a plausible time
	far       int     // number of IDs with a time more than a day in the future
	node      float64 // part of their weight that comes from nodes
	each      float64 // the same, once per node
}

// total weighs the layout for the column. If its IDs have few different nodes,
// it counts the cost of each node once, and for each ID only which of these
// nodes it has.
func (t *tally) total() float64 {
	few := t.each
	if len(t.nodes) > 0 {
		few -= float64(t.plausible) * math.Log2(float64(len(t.nodes)))
	}
	return max(t.weight, t.flat) + t.prior + max(0, few-t.node)
}

// A Report is the result of a Summary.
type Report struct {
	Count   int // IDs that were read
	Repeats int // IDs equal to the previous one
	Small   int // small numbers, from before the column had its layout

	Rounding Rounding

	Known  bool // some layout fits better than none; the fields below need it
	Name   string
	Layout firn.Layout // zero for UUIDs that are not a layout
	Fits   int         // IDs that fit the layout

	HasTime     bool
	First, Last time.Time
	Rate        float64 // mean number of IDs per second; 0 without a time span
	Nodes       int     // different node IDs
	NodesMore   bool    // there are more
	Late        int     // IDs with a time before that of the previous ID
	Future      int     // IDs with a time more than a minute in the future
}

// maxNodes bounds the number of node IDs that are counted.
const maxNodes = 1 << 13

// leastShare is how well an ID fits a layout that it cannot have, compared with
// its best layout, as a base-2 logarithm.
const leastShare = -30

// NewSummary makes a Summary that judges IDs by the time now.
func NewSummary(o Options, now time.Time) *Summary {
	o.Now = now
	return &Summary{options: o, tallies: make(map[string]*tally), aside: make(map[string]*tally),
		digits: NewDigits(now)}
}

// small is a bound of numbers that hardly any layout has made.
const small = 1 << 40

// IsAside reports whether a column with greater IDs has this one from before
// it moved to the layout: it is a small number, as AUTO_INCREMENT makes them,
// and would be from the first day of the layout.
func IsAside(id form.ID, l firn.Layout) bool {
	if len(id) > 16 {
		return false
	}
	if hi, lo := id.Number().Uint64s(); hi > 0 || lo >= small {
		return false
	}
	p, err := l.DecomposeBytes(id)
	return err != nil || p.Time.Sub(l.Epoch()) < 24*time.Hour
}

// isSmall reports whether a text is a small decimal number.
func isSmall(text string, from form.Form) bool {
	if len(text) > 13 || !from.IsAuto() && !from.Is(firn.Decimal) {
		return false
	}
	v, err := strconv.ParseUint(text, 10, 64)
	return err == nil && v < small
}

// Add adds the next ID. After an error the next one can be added.
func (s *Summary) Add(text string) error {
	if s.options.Layout.IsZero() && isSmall(text, s.options.From) {
		s.count++
		s.small++
		return nil
	}
	result, err := Read(text, s.options)
	if err != nil {
		return err
	}
	if suffix := form.Suffixed(text); suffix != "" {
		return errors.New(suffix)
	}
	s.count++
	if text == s.last {
		s.repeats++
	}
	s.last = strings.Clone(text)
	s.digits.Add(result.Readings[0].Bytes)
	tallies := s.tallies
	if l := s.options.Layout; !l.IsZero() && IsAside(result.Readings[0].Bytes, l) {
		s.small++
		tallies = s.aside
	}
	// Count how common a layout is once for the column, not for each ID.
	top := slices.Max(result.none.fits[:])
	for i := range result.Readings {
		top = max(top, result.Readings[i].fit())
	}
	for kind, fit := range result.none.fits {
		s.unknown[kind] += share(fit, top)
	}
	for i := range result.Readings {
		// If several encodings of the text have the layout, the best reading
		// counts.
		x := &result.Readings[i]
		better := func(other Reading) bool { return other.Name == x.Name && other.weight > x.weight }
		if !slices.ContainsFunc(result.Readings, better) {
			s.add(tallies, x, top)
		}
	}
	return nil
}

// Judged returns how many IDs can show a layout: not small numbers.
func (s *Summary) Judged() int { return s.count - s.small }

// fit returns the weight, regardless of how common the layout is.
func (r *Reading) fit() float64 {
	if r.candidate == nil {
		return r.weight
	}
	return r.weight - r.candidate.prior
}

// flatter returns what to add to the weight if all ages up to the usual one are
// equally probable, as in a column of many years.
func (r *Reading) flatter() float64 {
	age := Age(r.Time, r.now)
	if r.candidate == nil || age < 0 || age >= usualAge {
		return 0
	}
	return math.Log2(1 / usualAge / density(age))
}

// share returns how well an ID fits a layout, compared with its best layout: 0
// if it cannot have this layout.
func share(weight, best float64) float64 { return max(weight-best, leastShare) - leastShare }

func (s *Summary) add(tallies map[string]*tally, x *Reading, top float64) {
	t := tallies[x.Name]
	if t == nil {
		t = &tally{prior: x.weight - x.fit(), previous: x.Time, nodes: make(map[uint64]struct{})}
		t.Report = Report{Known: true, Name: x.Name, Layout: x.Layout, HasTime: x.HasParts, First: x.Time, Last: x.Time}
		tallies[x.Name] = t
	}
	t.Fits++
	t.weight += share(x.fit(), top)
	t.flat += share(x.fit()+x.flatter(), top)
	_, known := t.nodes[x.Node]
	if !known && len(t.nodes) <= maxNodes {
		t.nodes[x.Node] = struct{}{}
	}
	if x.candidate != nil && x.Plausible {
		w := x.candidate.nodeWeight(x.Node)
		t.plausible++
		t.node += w
		if !known {
			t.each += w
		}
	}
	if x.Time.Before(t.First) {
		t.First = x.Time
	}
	if x.Time.After(t.Last) {
		t.Last = x.Time
	}
	if x.Time.Before(t.previous) {
		t.Late++
	}
	t.previous = x.Time
	if age := Age(x.Time, s.options.Now); age < -minute {
		t.Future++
		if age < -86400 {
			t.far++
		}
	}
}

// noLayout weighs that no known layout made the column. All its numbers are
// then of one kind. Random ones are rarer in columns than among single numbers.
func (s *Summary) noLayout() float64 {
	most := math.Inf(-1)
	for kind, sum := range s.unknown {
		if kind == kindRandom && s.count > 1 {
			sum -= 2
		}
		most = max(most, sum+kindPriors[kind])
	}
	return most
}

// fits reports whether a tally can be of the column's layout: no generator is a
// day ahead of the clock. A few IDs may be of another kind.
func (t *tally) fits() bool { return 1000*t.far <= t.Fits }

// heaviest returns the tally that fits a column best, or nil.
func heaviest(tallies map[string]*tally, may func(*tally) bool) (best *tally) {
	for _, t := range tallies {
		if may(t) && (best == nil || t.total() > best.total() || t.total() == best.total() && t.Name < best.Name) {
			best = t
		}
	}
	return best
}

// Report returns the result so far.
func (s *Summary) Report() Report {
	var r Report
	var nodes []uint64
	tallies, small := s.tallies, s.small
	if len(tallies) == 0 && len(s.aside) > 0 {
		tallies, small = s.aside, 0
	}
	best := heaviest(tallies, (*tally).fits)
	if best == nil || s.noLayout() > best.total() {
		best = heaviest(tallies, func(*tally) bool { return true })
	}
	if best != nil && (!s.options.Layout.IsZero() || s.noLayout() <= best.total()) {
		r = best.Report
		r.Nodes, r.NodesMore = min(len(best.nodes), maxNodes), len(best.nodes) > maxNodes
		nodes = slices.Collect(maps.Keys(best.nodes))
	}
	if seconds := Age(r.First, r.Last); r.HasTime && seconds > 0 {
		r.Rate = float64(r.Fits) / seconds
	}
	r.Count, r.Repeats, r.Small = s.count, s.repeats, small
	r.Rounding = s.digits.Rounding(r.Layout, nodes)
	return r
}

// Unit returns the length of a tick.
func (r *Report) Unit() time.Duration { return unitOf(r.Layout) }
