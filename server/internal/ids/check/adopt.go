package check

import (
	"time"

	"github.com/firnid/firn"
)

// Free returns the largest block of node IDs of a layout that are not in use: a
// half of all node IDs, a quarter and so on, and the highest one of that size.
// ok is false if all are in use.
func (r *Report) Free(l firn.Layout) (lo, hi uint64, ok bool) {
	for bits := l.NodeBits() - 1; bits >= 0; bits-- {
		used := make(map[uint64]bool)
		for _, node := range r.Nodes {
			used[node>>bits] = true
		}
		last := l.MaxNode() >> bits
		if uint64(len(used)) > last {
			continue
		}
		block := last
		for used[block] {
			block--
		}
		return block << bits, block<<bits | (1<<bits - 1), true
	}
	return 0, 0, false
}

// NodesUncertain reports whether the node IDs in use may be others than Nodes:
// the IDs may be rounded, and their lowest bits are those of the node ID.
func (r *Report) NodesUncertain(l firn.Layout) bool {
	pieces := l.Pieces()
	return r.Rounding.Quiet && pieces[len(pieces)-1].Field == firn.FieldNode
}

// UsedIn returns the node IDs in use from lo to hi.
func (r *Report) UsedIn(lo, hi uint64) (met []uint64) {
	for _, node := range r.Nodes {
		if lo <= node && node <= hi {
			met = append(met, node)
		}
	}
	return met
}

// Floor returns a time, in whole milliseconds, that all IDs of the layout lie
// before.
func (r *Report) Floor(l firn.Layout) time.Time {
	return r.Last.Add(l.Unit() + time.Millisecond - 1).Truncate(time.Millisecond)
}
