package service

import (
	"cmp"
	"context"
	"maps"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/veil"
)

// A StaticBackend is a Backend for one layout and one node ID that the operator
// keeps unique. Every name gets its own generator when it is first used, and
// keeps it: a StaticBackend has no state outside the process.
//
// It makes duplicate IDs if two processes use the same node ID at the same
// time, or if the clock is set back while the process is down. See
// firn.StaticGrant.
//
// It is safe for concurrent use, and must be made by NewStaticBackend.
type StaticBackend struct {
	config StaticBackendConfig

	mu     sync.RWMutex // guards byName
	byName map[string]generator
}

var _ Backend = (*StaticBackend)(nil)

// A generator is a sequencer of a StaticBackend.
type generator struct {
	*Sequencer
	stats func() firn.Stats
}

// StaticBackendConfig is the configuration of a StaticBackend.
type StaticBackendConfig struct {
	Layout firn.Layout // firn.Default if zero
	Node   uint64

	// Options are those of every generator; nil means the defaults.
	Options *firn.Options

	// VeilKeys are the keys of veiled IDs; zero gives none.
	VeilKeys veil.Keys

	// MaxSequencers is how many names there can be; 0 means
	// DefaultMaxSequencers. A generator is small, but clients choose the names.
	MaxSequencers int
}

// NewStaticBackend makes a StaticBackend. It returns an error if the layout,
// the node ID or the options are invalid.
func NewStaticBackend(c StaticBackendConfig) (*StaticBackend, error) {
	c.Layout = cmp.Or(c.Layout, firn.Default())
	c.MaxSequencers = cmp.Or(c.MaxSequencers, DefaultMaxSequencers)
	s := &StaticBackend{config: c, byName: make(map[string]generator)}
	if _, err := s.make(); err != nil {
		return nil, err
	}
	return s, nil
}

// make makes a sequencer.
func (s *StaticBackend) make() (generator, error) {
	grant := firn.StaticGrant(s.config.Node)
	if s.config.Layout.Bits() == 128 {
		g, err := firn.NewGenerator128(s.config.Layout, grant, s.config.Options)
		if err != nil {
			return generator{}, err
		}
		return generator{NewSequencer(s.config.Layout, g), g.Stats}, nil
	}
	g, err := firn.NewGenerator(s.config.Layout, grant, s.config.Options)
	if err != nil {
		return generator{}, err
	}
	return generator{NewSequencer(s.config.Layout, g), g.Stats}, nil
}

// Sequencer returns the sequencer of a name and makes it at the first call. No
// name is ever forgotten to make room: if it came back it would begin anew, and
// repeat IDs if the clock was set back meanwhile.
func (s *StaticBackend) Sequencer(_ context.Context, name string, creator *Creator) (*Sequencer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q, ok := s.byName[name]; ok {
		return q.Sequencer, nil
	}
	if len(s.byName) >= s.config.MaxSequencers { // before counting a creation of the client
		return nil, tooManyNames(s.config.MaxSequencers, name)
	}
	if err := creator.check(name, ""); err != nil {
		return nil, err
	}
	q, err := s.make()
	if err != nil {
		return nil, err
	}
	name = strings.Clone(name)
	q.Veil = veilOf(s.config.VeilKeys, name, s.config.Layout)
	s.byName[name] = q
	return q.Sequencer, nil
}

// Opened returns the sequencer of a name that was used before.
func (s *StaticBackend) Opened(name string) *Sequencer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byName[name].Sequencer
}

// Ready returns an error if the clock allows no ID, of any name in use: a
// StaticBackend depends on nothing else.
func (s *StaticBackend) Ready(context.Context) error {
	least := time.Duration(math.MaxInt64)
	s.Usage(func(_ string, u *Usage) { least = min(least, u.Lead) })
	if least == math.MaxInt64 {
		least = 0 // no name is in use
	}
	return s.refusal(least)
}

// refusal returns why a generator makes no IDs, or nil.
func (s *StaticBackend) refusal(lead time.Duration) error {
	o := *cmp.Or(s.config.Options, new(firn.Options))
	now := time.Now()
	if o.Now != nil {
		now = o.Now()
	}
	return clockRefusal(s.config.Layout, o.MaxAhead, lead, now)
}

// Admin returns nil: a StaticBackend has no store.
func (s *StaticBackend) Admin() *StoreAdmin { return nil }

// Usage calls yield for every name in use.
func (s *StaticBackend) Usage(yield func(name string, u *Usage)) {
	s.mu.RLock()
	all := maps.Clone(s.byName)
	s.mu.RUnlock()
	for name, q := range all {
		stats := q.stats()
		yield(name, &Usage{Stats: sequencer.Stats{Stats: stats}, Layout: s.config.Layout, Refusal: s.refusal(stats.Lead)})
	}
}
