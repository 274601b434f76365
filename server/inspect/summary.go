package inspect

import (
	"math"
	"strings"
	"time"

	"github.com/firnid/firn"
)

// A Summary finds the layout that fits a column of IDs best, and what the
// column holds by it. It must be made by NewSummary, and used by one goroutine
// at a time.
type Summary struct {
	scanner *Scanner
	now     time.Time
	by      map[string]*tallyOf
	unknown float64 // the sum of the logarithms of shares
	report  Report
	last    string  // the previous ID
	chance  float64 // how many IDs look rounded by chance
}

// A tallyOf is a column read by one layout.
type tallyOf struct {
	name   string
	layout firn.Layout
	weight float64 // the sum of the logarithms of shares, above the least
	ids    int
	timed  bool // its IDs hold a time
	first  time.Time
	latest time.Time
	prev   time.Time
	late   int
	future int
	nodes  map[uint64]struct{}
}

// A Report is what a Summary has found.
type Report struct {
	Count   int // IDs that were read
	Rounded int // of these, numbers that look rounded, if there are more than by chance
	Repeats int // IDs that are the same as the one before

	Known  bool // a layout fits better than none; the rest needs it
	Name   string
	Layout firn.Layout // zero for UUIDs that are not a layout
	Fits   int         // IDs that the layout can have

	HasTime     bool
	First, Last time.Time
	Nodes       int  // different node IDs
	NodesMore   bool // there are more of them
	Late        int  // IDs whose time is before that of the ID before
	Future      int  // IDs of a time more than a minute ahead
}

// maxNodes bounds the node IDs that are told apart.
const maxNodes = 1 << 13

// leastShare is the share, as a logarithm of base 2, of a layout that an ID
// cannot have.
const leastShare = -30

// NewSummary makes a Summary of IDs that are judged by now.
func NewSummary(o Options, now time.Time) *Summary {
	return &Summary{scanner: NewScanner(o), now: now, by: make(map[string]*tallyOf)}
}

// Add reads the next ID. After an error the next one can be added.
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
	s.unknown += math.Max(math.Log2(result.Unknown), leastShare) - leastShare
	for i := range s.scanner.found {
		s.add(&s.scanner.found[i])
	}
	return nil
}

func (s *Summary) add(w *weighed) {
	name := w.r.Name
	if w.c != nil {
		name = w.c.name
	}
	t := s.by[name]
	if t == nil {
		t = &tallyOf{name: name, first: w.r.Time, latest: w.r.Time, prev: w.r.Time, timed: w.r.HasParts, nodes: make(map[uint64]struct{})}
		if w.c != nil {
			t.layout = w.c.layout
		}
		s.by[name] = t
	}
	t.ids++
	t.weight += math.Max(math.Log2(w.r.Score), leastShare) - leastShare
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
	if len(t.nodes) <= maxNodes {
		t.nodes[w.r.Node] = struct{}{}
	}
}

// Report is what was found so far.
func (s *Summary) Report() Report {
	r := s.report
	if float64(r.Rounded) < 4*s.chance+float64(r.Count/50) {
		r.Rounded = 0
	}
	var best *tallyOf
	for _, t := range s.by {
		if best == nil || t.weight > best.weight || t.weight == best.weight && t.name < best.name {
			best = t
		}
	}
	if best == nil || s.scanner.asked == nil && s.unknown > best.weight {
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

// Unit is the length of a tick.
func (r *Report) Unit() time.Duration {
	if r.Layout.IsZero() {
		return 100 * time.Nanosecond
	}
	return r.Layout.Unit()
}
