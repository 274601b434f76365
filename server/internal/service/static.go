package service

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/firnid/firn"
)

// A Static is a Backend for one layout and one node ID that the operator keeps
// unique. Every name gets its own generator when it is first used, and keeps
// it: a Static has no state outside the process.
//
// It makes duplicate IDs if two processes use the same node ID at the same
// time, or if the clock is set back while the process is down. See
// firn.StaticGrant.
//
// It is safe for concurrent use, and must be made by NewStatic.
type Static struct {
	c StaticConfig

	mu     sync.RWMutex // guards byName
	byName map[string]Sequencer
}

var _ Backend = (*Static)(nil)

// StaticConfig is the configuration of a Static.
type StaticConfig struct {
	Layout firn.Layout // firn.Default if zero
	Node   uint64

	// Options are those of every generator; nil means the defaults.
	Options *firn.Options

	// MaxNames is how many names there can be; 0 means DefaultMaxNames. A
	// generator is small, but clients choose the names.
	MaxNames int
}

// DefaultMaxNames is the value of StaticConfig.MaxNames that 0 stands for.
const DefaultMaxNames = 10_000

// NewStatic makes a Static. It returns an error if the layout, the node ID or
// the options are invalid.
func NewStatic(c StaticConfig) (*Static, error) {
	c.Layout = cmp.Or(c.Layout, firn.Default())
	c.MaxNames = cmp.Or(c.MaxNames, DefaultMaxNames)
	s := &Static{c: c, byName: make(map[string]Sequencer)}
	if _, err := s.make(); err != nil {
		return nil, err
	}
	return s, nil
}

// make makes a sequencer.
func (s *Static) make() (Sequencer, error) {
	q := Sequencer{Layout: s.c.Layout}
	grant := firn.StaticGrant(s.c.Node)
	if q.Layout.Bits() == 128 {
		g, err := firn.NewGenerator128(q.Layout, grant, s.c.Options)
		t := turnsOf(maker[firn.ID128](g), q.Layout)
		q.Source128, q.Try128 = t, t
		return q, err
	}
	g, err := firn.NewGenerator(q.Layout, grant, s.c.Options)
	t := turnsOf(maker[firn.ID](g), q.Layout)
	q.Source, q.Try = t, t
	return q, err
}

// Sequencer returns the sequencer of a name and makes it at the first call.
func (s *Static) Sequencer(ctx context.Context, name string) (Sequencer, error) {
	if q, ok := s.Opened(name); ok {
		return q, nil
	}
	if err := s.room(name); err != nil { // before counting a creation of the client
		return Sequencer{}, err
	}
	if err := mayCreate(ctx, name); err != nil {
		return Sequencer{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q, ok := s.byName[name]; ok {
		return q, nil
	}
	if err := s.roomLocked(name); err != nil {
		return Sequencer{}, err
	}
	q, err := s.make()
	if err != nil {
		return Sequencer{}, err
	}
	s.byName[strings.Clone(name)] = q
	return q, nil
}

// room returns an error if there is no room for another name.
func (s *Static) room(name string) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.roomLocked(name)
}

// roomLocked is room for a caller that holds s.mu. No name is ever forgotten to
// make room: if it came back it would begin anew, and repeat IDs if the clock
// was set back meanwhile.
func (s *Static) roomLocked(name string) error {
	if len(s.byName) >= s.c.MaxNames {
		return fmt.Errorf("%w: this server already keeps its limit of %d names, and %s is not one of them", ErrTooManyNames, s.c.MaxNames, name)
	}
	return nil
}

// Opened returns the sequencer of a name that was used before.
func (s *Static) Opened(name string) (Sequencer, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	q, ok := s.byName[name]
	return q, ok
}

// Ready returns nil: a Static depends on nothing else.
func (s *Static) Ready(context.Context) error { return nil }

// Admin returns nil: a Static has no store.
func (s *Static) Admin() Administrator { return nil }

// Stats calls yield for every name in use.
func (s *Static) Stats(yield func(name string, s firn.Stats)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name, q := range s.byName {
		if t, ok := q.Source.(turns[firn.ID]); ok {
			yield(name, t.m.(*firn.Generator).Stats())
		} else if t, ok := q.Source128.(turns[firn.ID128]); ok {
			yield(name, t.m.(*firn.Generator128).Stats())
		}
	}
}
