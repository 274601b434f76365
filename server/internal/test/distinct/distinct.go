// Package distinct collects IDs that must all differ, for tests. Its types are
// safe for concurrent use.
package distinct

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/firnid/firn"
)

// IDs are IDs with who made them. The zero value has none.
type IDs[I comparable] struct {
	mu    sync.Mutex
	by    map[I]string
	twice int
}

// Add adds IDs. The first of all that comes twice is an error of the test.
func (d *IDs[I]) Add(t testing.TB, by string, ids ...I) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil {
		d.by = make(map[I]string)
	}
	for _, id := range ids {
		if other, ok := d.by[id]; ok {
			if d.twice++; d.twice == 1 {
				t.Errorf("%s made %v, which %s had made", by, id, other)
			}
		}
		d.by[id] = by
	}
}

// Len returns how many there are.
func (d *IDs[I]) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.by)
}

// Slots are IDs of a layout with ticks of 1 ms. They take little room even if
// there are millions, as long as many follow each other.
type Slots struct {
	Layout firn.Layout

	mu    sync.Mutex
	spans map[uint64][]span // by node
	ids   int64
}

// A span is slots of a node, both ends inclusive.
type span struct{ first, last uint64 }

// Add adds count IDs, each one more than the one before.
func (s *Slots) Add(first firn.ID, count uint64) error {
	node, begin, err := s.slot(first)
	same, end, wrong := s.slot(first + firn.ID(count-1))
	if err = cmp.Or(err, wrong); err != nil {
		return err
	}
	if same != node || end-begin != count-1 {
		return fmt.Errorf("a run of %d IDs from %v is not of one node, slot after slot", count, first)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spans == nil {
		s.spans = make(map[uint64][]span)
	}
	s.ids += int64(count)
	spans := s.spans[node]
	if n := len(spans); n > 0 && spans[n-1].last+1 == begin {
		spans[n-1].last = end
	} else {
		s.spans[node] = append(spans, span{begin, end})
	}
	return nil
}

// slot returns the node of an ID, and its place among those of the node.
func (s *Slots) slot(id firn.ID) (node, slot uint64, err error) {
	p, err := s.Layout.Decompose(id)
	return p.Node, uint64(p.Time.UnixMilli())*(s.Layout.MaxSeq()+1) + p.Seq, err
}

// AddAll adds IDs, of which many follow each other.
func (s *Slots) AddAll(ids []firn.ID) error {
	for len(ids) > 0 {
		n := 1
		for n < len(ids) && ids[n] == ids[n-1]+1 {
			n++
		}
		if err := s.Add(ids[0], uint64(n)); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// Len returns how many were added.
func (s *Slots) Len() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids
}

// Check returns of how many nodes they are, and how many came twice. The first
// ten spans that share some are errors of the test.
func (s *Slots) Check(t testing.TB) (nodes int, twice uint64) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	examples := 0
	for node, spans := range s.spans {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
		far := spans[0] // of those so far, the one that ends last: it began no later than the next
		for _, next := range spans[1:] {
			if next.first <= far.last {
				twice += min(next.last, far.last) - next.first + 1
				if examples++; examples <= 10 {
					t.Errorf("node %d: slots %v and %v have IDs in common", node, far, next)
				}
			}
			if next.last > far.last {
				far = next
			}
		}
	}
	return len(s.spans), twice
}
