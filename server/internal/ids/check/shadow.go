package check

import (
	"encoding/binary"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
)

// Remembered is how many IDs a Shadow remembers.
const Remembered = 1 << 17

// A Shadow compares the IDs of the other generator with those of a sequencer
// while both run. It remembers the last Remembered IDs. The exported fields must
// be set before use. It is not safe for concurrent use.
type Shadow struct {
	Layout firn.Layout // with IDs of 64 bits
	From   form.Form   // of the other generator's IDs
	Lo, Hi uint64      // the sequencer's node IDs
	Since  time.Time   // the sequencer's IDs do not lie before it

	count  int
	recent [Remembered]firn.ID
	isNew  map[firn.ID]bool // whether the sequencer made it
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
	b, _, err := s.From.Decode(text, 64)
	if err != nil {
		return nil, None, err
	}
	id := firn.ID(binary.BigEndian.Uint64(b))
	if contact := s.add(id, false); contact != None {
		return b, contact, nil
	}
	p, err := s.Layout.Decompose(id)
	if err == nil && p.Node >= s.Lo && p.Node <= s.Hi && !p.Time.Before(s.Since) {
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
	at := s.count % Remembered
	delete(s.isNew, s.recent[at])
	s.recent[at], s.isNew[id] = id, isNew
	s.count++
	return None
}
