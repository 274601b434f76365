package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/veil"
)

// A match says whether an ID may be from a sequencer of the store.
type match struct {
	Name    string
	Why     string // or why not
	reading *inspect.Reading
}

// matches compares an ID with the sequencers of the store whose layout it can
// have: those that it may be from, and the others. The one that it is said to be
// of comes first. Without an answer of the store, there are none.
func (k *Console) matches(v *visit, id string, o inspect.Options, of string) (matches, misses []match) {
	s := k.snapshots.recent(v.r.Context())
	readings := make(map[firn.Layout]*inspect.Reading)
	for _, q := range s.Sequencers {
		l := q.Info.Config.Layout
		if q.Damage != "" || !v.who.MayRead("") || !v.who.MayRead(q.Name) || !o.Layout.IsZero() && !o.Layout.SameIDs(l) {
			continue
		}
		x, ok := readings[l]
		if !ok {
			if result, err := inspect.Read(id, inspect.Options{Layout: l, From: o.From, Now: o.Now}); err == nil {
				x = &result.Readings[0]
			}
			readings[l] = x
		}
		if x == nil {
			continue
		}
		fits, why := s.compare(q, id, of, x, v)
		to, at := &misses, 0
		if fits {
			to = &matches
		}
		if q.Name != of {
			at = len(*to)
		}
		*to = slices.Insert(*to, at, match{q.Name, why, x})
	}
	return matches, misses
}

// compare says whether an ID may be from a sequencer: its prefix, its time, and
// the mark of its node ID fit. A veiled ID was read as one of the sequencer of.
func (s *snapshot) compare(q sequencerInfo, id, of string, x *inspect.Reading, v *visit) (fits bool, why string) {
	c := q.Info.Config
	_, veiled := veil.KeyNumber(id)
	prefix := strings.LastIndexByte(id, '_')
	switch {
	case veiled && q.Name != of:
		return false, "The ID was unveiled for " + of + "."
	case !veiled && prefix >= 0 && id[:prefix] != c.Prefix:
		return false, "Its prefix is " + cmp.Or(c.Prefix, "empty") + "."
	}
	if !x.Plausible || x.Time.After(v.now.Add(c.MaxAhead)) {
		return false, "The time would be " + utc(x.Time) + "."
	}
	ofNode := func(n grant.NodeInfo) bool { return n.Node == x.Node }
	i := slices.IndexFunc(q.Nodes, ofNode)
	switch {
	case !q.NodesRead:
		return true, "Its node IDs were not compared."
	case slices.ContainsFunc(q.Damaged, ofNode):
		return true, fmt.Sprintf("The record of node %d cannot be read.", x.Node)
	case i < 0:
		return false, fmt.Sprintf("No server has ever held node %d.", x.Node)
	}
	n := q.Nodes[i]
	server := s.holder(q.Name, n)
	switch {
	case !x.Time.Before(n.Until):
		return false, fmt.Sprintf("The last window of node %d ended before, at %s.", x.Node, utc(n.Until))
	case n.Owner == "":
		return true, fmt.Sprintf("Node %d was fenced later.", x.Node)
	case n.HeldAt(v.now):
		return true, fmt.Sprintf("%s holds node %d now, until %s or longer.", server, x.Node, clock(n.Until))
	}
	return true, fmt.Sprintf("%s held node %d last, until %s.", server, x.Node, utc(n.Until))
}

// matchTable returns a table of matches; head is the class of its head.
func matchTable(all []match, head string) table {
	t := table{Class: "stack matches", Head: head, Columns: []column{{"Sequencer", ""}, {"Why", ""}}}
	for _, m := range all {
		t.Rows = append(t.Rows, row{Cells: []cell{{Text: m.Name, Link: addressOf(m.Name)}, {Text: m.Why}}})
	}
	return t
}
