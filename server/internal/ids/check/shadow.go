package check

import (
	"encoding/binary"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/form"
)

// remembered is how many IDs a Shadow remembers.
const remembered = 1 << 17

// A Shadow compares the IDs of the other generator with those of a sequencer
// while both run. It remembers the last Remembered IDs. It must be made by
// NewShadow, and is not safe for concurrent use.
type Shadow struct {
	layout firn.Layout     // with IDs of 64 bits
	from   form.Form       // of the other generator's IDs
	nodes  grant.NodeRange // of the sequencer
	since  time.Time       // the sequencer's IDs do not lie before it

	count  int
	recent [remembered]firn.ID
	isNew  map[firn.ID]bool // whether the sequencer made it
}

// NewShadow returns a Shadow for a sequencer with IDs of 64 bits; from is the
// form of the other generator's IDs.
func NewShadow(i grant.Info, from form.Form) *Shadow {
	s := &Shadow{layout: i.Config.Layout, from: from, nodes: grant.NodeRange{Hi: i.Config.Layout.MaxNode()},
		since: i.Created}
	if i.Config.Nodes != nil {
		s.nodes = *i.Config.Nodes
	}
	if i.Floor.After(s.since) {
		s.since = i.Floor
	}
	return s
}

// A Contact says how an ID of one generator meets those of the other.
type Contact string

// The contacts, and that an ID has none.
const (
	None   Contact = ""
	Equal  Contact = "both generators made it"
	Within Contact = "the sequencer may make it: it has one of its node IDs"
)

// New adds an ID of the sequencer.
func (s *Shadow) New(id firn.ID) Contact { return s.add(id, true) }

// Old adds an ID of the other generator, and returns it.
func (s *Shadow) Old(text string) (form.ID, Contact, error) {
	b, _, err := s.from.Decode(text, 64)
	if err != nil {
		return nil, None, err
	}
	id := firn.ID(binary.BigEndian.Uint64(b))
	if contact := s.add(id, false); contact != None {
		return b, contact, nil
	}
	p, err := s.layout.Decompose(id)
	if err == nil && p.Node >= s.nodes.Lo && p.Node <= s.nodes.Hi && !p.Time.Before(s.since) {
		return b, Within, nil
	}
	return b, None, nil // the sequencer makes no ID of another layout
}

func (s *Shadow) add(id firn.ID, isNew bool) Contact {
	if s.isNew == nil {
		s.isNew = make(map[firn.ID]bool)
	}
	if by, ok := s.isNew[id]; ok {
		if by != isNew {
			return Equal
		}
		return None
	}
	at := s.count % remembered
	delete(s.isNew, s.recent[at])
	s.recent[at], s.isNew[id] = id, isNew
	s.count++
	return None
}
