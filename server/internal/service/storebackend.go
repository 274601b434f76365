package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/veil"
)

// A StoreBackend is a Backend that keeps its node IDs in a store, so that any
// number of servers can give IDs of the same names. When a name is first used,
// its sequencer is opened with the layout that it was created with, or created
// with the configured layout. It is closed to make room for another, or because
// it was created again with another layout: in the background, and no call
// opens the name again before that is done. Close closes all that are open.
//
// It is safe for concurrent use. It must be made by NewStoreBackend, and ends
// with Close.
type StoreBackend struct {
	*StoreAdmin
	config StoreBackendConfig

	mu              sync.RWMutex // guards the fields below, and those of entries that say so
	byName          map[string]*entry
	closing         int                // entries that are closing
	failed          map[string]failure // names that exist and could not be opened when they were last used
	closed          bool
	configsReadable bool // no configuration was found unreadable since Ready has looked

	nodes nodeCounter

	// How fast each client may use new names. Both protect the store: a
	// sequencer stays in it for ever. A client that uses names at random can so
	// delay its own first use of other names, and no more.
	creations meters // sequencers created by use
	missed    meters // reads of the store for names that it does not have

	retiring     sync.WaitGroup  // retired sequencers that are not closed yet
	background   sync.WaitGroup  // sequencers that are being opened, and a round of nodes
	openingCtx   context.Context // done when openings must end
	stopOpening  context.CancelFunc
	countingCtx  context.Context // done when Close begins
	stopCounting context.CancelFunc
}

var _ Backend = (*StoreBackend)(nil)

// StoreBackendConfig is the configuration of a StoreBackend.
type StoreBackendConfig struct {
	// Admin administers the store. The StoreBackend closes it.
	Admin *StoreAdmin

	// Peers are the other servers of the store, to ask for IDs of a sequencer
	// for which this server has no node ID; nil asks none.
	Peers Peers

	// Options is how sequencers are opened. Its Layout, MaxAhead and Window
	// apply to those that are created; a zero layout means firn.Default.
	Options sequencer.Options

	// MaxSequencers is how many sequencers may be open at once; 0 means
	// DefaultMaxSequencers. Opening one more that exists closes the least
	// recently used ones. Creating one more closes only sequencers that have
	// been unused for a while.
	MaxSequencers int

	// VeilKeys are the keys of veiled IDs; zero gives none.
	VeilKeys veil.Keys

	// Template sets in c, a copy of Options, what is different for the
	// sequencer of a name; nil changes nothing. It is called when a name is
	// first used.
	Template func(name string, c *sequencer.Options) error
}

// A failure is why a sequencer that exists could not be opened.
type failure struct {
	err    error
	at     time.Time
	config grant.Config // set if other servers have been asked for its IDs
}

// NewStoreBackend makes a StoreBackend. It opens nothing yet.
func NewStoreBackend(c StoreBackendConfig) *StoreBackend {
	c.Options.Layout = cmp.Or(c.Options.Layout, firn.Default())
	c.MaxSequencers = cmp.Or(c.MaxSequencers, DefaultMaxSequencers)
	admin := *c.Admin
	b := &StoreBackend{
		StoreAdmin: &admin,
		config:     c,
		byName:     make(map[string]*entry),
		failed:     make(map[string]failure),
		creations:  meters{rate: auth.Rate{PerSecond: 1, Burst: 1000}},
		missed:     meters{rate: auth.Rate{PerSecond: 100, Burst: 100}},
	}
	b.openingCtx, b.stopOpening = context.WithCancel(context.Background())
	b.countingCtx, b.stopCounting = context.WithCancel(context.Background())
	admin.rejoin = b.rejoin
	return b
}

// Admin returns the administration of the store.
func (b *StoreBackend) Admin() *StoreAdmin { return b.StoreAdmin }

// Sequencer returns the sequencer of a name and opens it at the first call.
func (b *StoreBackend) Sequencer(ctx context.Context, name string, creator *Creator) (*Sequencer, error) {
	if q := b.Opened(name); q != nil {
		return q, nil
	}
	if f, ok := b.recentFailure(name); ok && !Forwarded(ctx) {
		return b.peerSequencer(name, f), nil
	}
	q, err := b.openOwn(ctx, name, creator)
	if err != nil {
		return b.fallBackToPeers(ctx, name, err)
	}
	return q, nil
}

// Opened returns the sequencer of a name if it is open.
func (b *StoreBackend) Opened(name string) *Sequencer {
	if e := b.openEntry(name); e != nil {
		return e.sequencer
	}
	return nil
}

// storeError makes an error of the store, or of a wait for it, match
// firn.ErrUnavailable. An error in errorKinds is returned unchanged.
func storeError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := knownKind(err); ok {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return fmt.Errorf("%w: %w", firn.ErrUnavailable, err)
}

// Owner returns the owner of this server's node ID of a sequencer, as in its
// record; "" if it holds none.
func (b *StoreBackend) Owner(name string) string {
	e := b.openEntry(name)
	if e == nil {
		return ""
	}
	if s := e.Status(); s.Phase == grant.Holding || s.Phase == grant.Losing {
		return s.Owner
	}
	return ""
}
