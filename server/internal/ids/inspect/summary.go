package inspect

import (
	"math"
	"strings"
	"time"

	"github.com/firnid/firn"
)

// A Summary finds the layout that fits a column of IDs best, and what the
// column then holds. It must be made by NewSummary, and is not safe for
// concurrent use.
type Summary struct {
	scanner *Scanner
	now     time.Time
	by      map[string]*tallyOf
	of      map[*candidate]*tallyOf // the same, by layout
	unknown float64                 // sum of how well IDs fit no layout
	report  Report
	last    string  // the previous ID
	chance  float64 // expected number of IDs that look rounded by chance
}

// A tallyOf is a column read by one layout.
type tallyOf struct {
	name   string
	layout firn.Layout
	prior  float64 // how common its IDs are
	node   float64 // part of the weight that comes from nodes,
	mass   float64 // except this probability
	each   float64 // the same, once per node

	plausible int     // number of IDs that these cover
	weight    float64 // sum of how well IDs fit it
	ids       int
	timed     bool // its IDs contain a time
	first     time.Time
	latest    time.Time
	prev      time.Time
	late      int
	future    int
	nodes     map[uint64]struct{}
}

// total weighs the layout for the column. If its IDs have few different nodes,
// it counts the cost of each node once, and for each ID only which of these
// nodes it has.
func (t *tallyOf) total() float64 {
	few := t.each
	if len(t.nodes) > 0 {
		few -= float64(t.plausible) * math.Log2(float64(len(t.nodes)))
	}
	return t.weight + t.prior + max(0, few-t.node-math.Log2(t.mass))
}

// A Report is the result of a Summary.
type Report struct {
	Count   int // IDs that were read
	Rounded int // those that look rounded, if there are more than by chance
	Repeats int // IDs equal to the previous one

	Known  bool // some layout fits better than none; the fields below need it
	Name   string
	Layout firn.Layout // zero for UUIDs that are not a layout
	Fits   int         // IDs that fit the layout

	HasTime     bool
	First, Last time.Time
	Nodes       int  // different node IDs
	NodesMore   bool // there are more
	Late        int  // IDs with a time before that of the previous ID
	Future      int  // IDs with a time more than a minute in the future
}

// maxNodes bounds the number of node IDs that are counted.
const maxNodes = 1 << 13

// leastShare is how well an ID fits a layout that it cannot have, compared with
// its best layout, as a base-2 logarithm.
const leastShare = -30

// NewSummary makes a Summary that judges IDs by the time now.
func NewSummary(o Options, now time.Time) *Summary {
	return &Summary{scanner: NewScanner(o), now: now, by: make(map[string]*tallyOf), of: make(map[*candidate]*tallyOf)}
}

// Add adds the next ID. After an error the next one can be added.
func (s *Summary) Add(text string) error {
	result, err := s.scanner.Scan(text, s.now)
	if err != nil {
		return err
	}
	s.report.Count++
	if text == s.last {
		s.report.Repeats++
	}
	s.last = strings.Clone(text)
	chance, rounded := isRounded(result.Readings[0].n)
	if rounded {
		s.report.Rounded++
	}
	if chance > 0 {
		s.chance += 1 / chance
	}
	// Count how common a layout is once for the column, not for each ID.
	none := s.scanner.none.fit
	top := none
	for i := range s.scanner.found {
		w := &s.scanner.found[i]
		top = max(top, w.r.weight-w.prior())
	}
	s.unknown += fit(none, top)
	for i := range s.scanner.found {
		if w := &s.scanner.found[i]; s.isBest(w) {
			s.add(w, top)
		}
	}
	return nil
}

// isBest reports whether no other encoding of the text reads better by the
// layout of a reading.
func (s *Summary) isBest(w *weighed) bool {
	for i := range s.scanner.found {
		other := &s.scanner.found[i]
		if other.n != w.n && other.c == w.c && w.c != nil && other.r.weight > w.r.weight {
			return false
		}
	}
	return true
}

// prior returns how common the IDs of a reading's layout are.
func (w *weighed) prior() float64 {
	if w.c == nil {
		return 0
	}
	return w.c.habit.prior
}

// fit returns how well an ID fits a layout, compared with its best layout: 0 if
// it cannot have this layout.
func fit(weight, best float64) float64 { return max(weight-best, leastShare) - leastShare }

func (s *Summary) add(w *weighed, top float64) {
	t := s.of[w.c]
	name := w.r.Name
	if w.c != nil {
		name = w.c.name
	} else {
		t = s.by[name]
	}
	if t == nil {
		t = &tallyOf{name: name, first: w.r.Time, latest: w.r.Time, prev: w.r.Time, timed: w.r.HasParts, prior: w.prior(), mass: 1, nodes: make(map[uint64]struct{})}
		if w.c != nil {
			t.layout = w.c.layout
		}
		s.by[name] = t
		if w.c != nil {
			s.of[w.c] = t
		}
	}
	t.ids++
	t.weight += fit(w.r.weight-t.prior, top)
	_, known := t.nodes[w.r.Node]
	if !known && len(t.nodes) <= maxNodes {
		t.nodes[w.r.Node] = struct{}{}
	}
	if w.c != nil && w.r.Plausible {
		mass := w.c.nodeMass(w.r.Node)
		t.plausible++
		// One logarithm for many: the least mass of a node is 2^-50.
		if t.mass *= mass; t.mass < 0x1p-900 {
			t.node, t.mass = t.node+math.Log2(t.mass), 1
		}
		if !known {
			t.each += math.Log2(mass)
		}
	}
	at := w.r.Time
	switch {
	case at.Before(t.first):
		t.first = at
	case at.After(t.latest):
		t.latest = at
	}
	if at.Before(t.prev) {
		t.late++
	}
	t.prev = at
	if Age(at, s.now) < -minute {
		t.future++
	}
}

// Report returns the result so far.
func (s *Summary) Report() Report {
	r := s.report
	if float64(r.Rounded) < 4*s.chance+float64(r.Count/50) {
		r.Rounded = 0
	}
	var best *tallyOf
	for _, t := range s.by {
		if best == nil || t.total() > best.total() || t.total() == best.total() && t.name < best.name {
			best = t
		}
	}
	if best == nil || s.scanner.asked == nil && s.unknown+randomPrior > best.total() {
		return r
	}
	r.Known, r.Name, r.Layout, r.Fits = true, best.name, best.layout, best.ids
	r.HasTime = best.timed
	if !r.HasTime {
		return r
	}
	r.First, r.Last, r.Late, r.Future = best.first, best.latest, best.late, best.future
	r.Nodes, r.NodesMore = min(len(best.nodes), maxNodes), len(best.nodes) > maxNodes
	return r
}

// Unit returns the length of a tick.
func (r *Report) Unit() time.Duration {
	if r.Layout.IsZero() {
		return 100 * time.Nanosecond
	}
	return r.Layout.Unit()
}
