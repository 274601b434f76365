package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/veil"
)

// A Cluster is a Backend that keeps its node IDs in a store, so that any number
// of servers can give IDs of the same names. When a name is first used, its
// sequencer is opened with the layout that it was created with, or created with
// the configured layout.
//
// It is safe for concurrent use. It must be made by NewCluster, and ends with
// Close.
type Cluster struct {
	*StoreAdmin
	config ClusterConfig

	mu      sync.RWMutex // guards the fields below, and those of entries that say so
	byName  map[string]*entry
	closing int                // entries that are closing
	failed  map[string]failure // names that exist and could not be opened when they were last used
	closed  bool
	sound   bool // no configuration was found unreadable since Ready has looked

	nodes nodeCounter

	// How fast each client may use new names. Both protect the store: a sequencer
	// stays in it for ever. A client that uses names at random can so delay its
	// own first use of other names, and no more.
	creations rateLimit // sequencers created by use
	missed    rateLimit // reads of the store for names that it does not have

	retiring      sync.WaitGroup  // retired sequencers that are not closed yet
	openings      sync.WaitGroup  // sequencers that are being opened, and a round of nodes
	openingUntil  context.Context // done when openings must end
	stopOpening   context.CancelFunc
	countingUntil context.Context // done when Close begins
	stopCounting  context.CancelFunc
}

var _ Backend = (*Cluster)(nil)

// ClusterConfig is the configuration of a Cluster.
type ClusterConfig struct {
	// Admin administers the store. The Cluster closes it.
	Admin *StoreAdmin

	// Peers are the other servers of the store, to ask for IDs of a sequencer for
	// which this server has no node ID; nil asks none.
	Peers Peers

	// Options is how sequencers are opened. Its Layout, MaxAhead and Window apply
	// to those that are created; a zero layout means firn.Default.
	Options sequencer.Options

	// MaxNames is how many sequencers may be open at once; 0 means
	// DefaultMaxNames. Opening one more that exists closes the least recently used
	// ones. Creating one more closes only sequencers that have been unused for a
	// while.
	MaxNames int

	// Veil has the keys of veiled IDs; nil gives none.
	Veil veil.Keys

	// Template sets in c, a copy of Options, what is different for the sequencer of a
	// name; nil changes nothing. It is called when a name is first used.
	Template func(name string, c *sequencer.Options) error
}

// ErrNoSequencer is matched by errors for a sequencer that must be created
// before it is used.
var ErrNoSequencer = errors.New("no such sequencer")

// ErrTemplate is matched by errors in the configuration of a name.
var ErrTemplate = errors.New("invalid server configuration")

// An entry is a name in use: its sequencer is being opened, is open, or is being
// closed.
type entry struct {
	// Guarded by the Cluster's mu.
	phase    phase
	changed  chan struct{} // closed when opening or closing has ended
	err      error         // why it could not be opened
	panicked any           // the panic of a user's clock or template

	// Set when it is open.
	since     time.Time
	sequencer *Sequencer
	openSequencer
}

// An openSequencer is a sequencer.Sequencer or a sequencer.Sequencer128.
type openSequencer interface {
	Config() grant.Config
	Join(context.Context) error
	Close(context.Context) error
	Stats() sequencer.Stats
	Status() grant.Status
}

// A phase is what an entry does.
type phase int

const (
	phaseOpening phase = iota
	phaseOpen
	phaseClosing
	phaseFailed // and no longer in byName
)

// A failure is why a sequencer that exists could not be opened.
type failure struct {
	err    error
	at     time.Time
	config grant.Config // set if other servers have been asked for its IDs
}

// NewCluster makes a Cluster. It opens nothing yet.
func NewCluster(c ClusterConfig) *Cluster {
	c.Options.Layout = cmp.Or(c.Options.Layout, firn.Default())
	c.MaxNames = cmp.Or(c.MaxNames, DefaultMaxNames)
	admin := *c.Admin
	cluster := &Cluster{StoreAdmin: &admin, config: c, byName: make(map[string]*entry), failed: make(map[string]failure),
		creations: rateLimit{burst: 1000, every: time.Second}, missed: rateLimit{burst: 100, every: 10 * time.Millisecond}}
	cluster.openingUntil, cluster.stopOpening = context.WithCancel(context.Background())
	cluster.countingUntil, cluster.stopCounting = context.WithCancel(context.Background())
	admin.rejoin = cluster.rejoin
	return cluster
}

// Admin returns the administration of the store.
func (c *Cluster) Admin() *StoreAdmin { return c.StoreAdmin }

// Sequencer returns the sequencer of a name and opens it at the first call.
func (c *Cluster) Sequencer(ctx context.Context, name string, by Creator) (*Sequencer, error) {
	if q := c.Opened(name); q != nil {
		return q, nil
	}
	if f, ok := c.recentLack(name); ok && !Forwarded(ctx) {
		return c.peerSequencer(name, f), nil
	}
	q, err := c.openOwn(ctx, name, by)
	if err != nil {
		return c.fallBackToPeers(ctx, name, err)
	}
	return q, nil
}

// Opened returns the sequencer of a name if it is open.
func (c *Cluster) Opened(name string) *Sequencer {
	if e := c.openEntry(name); e != nil {
		return e.sequencer
	}
	return nil
}

// openEntry returns the entry of a name if its sequencer is open, or nil.
func (c *Cluster) openEntry(name string) *entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e := c.byName[name]; e != nil && e.phase == phaseOpen {
		return e
	}
	return nil
}

// openOwn returns the sequencer of a name, with a node ID of this server.
func (c *Cluster) openOwn(ctx context.Context, name string, by Creator) (*Sequencer, error) {
	for first := true; ; first = false {
		if err := c.makeRoom(ctx, name); err != nil {
			return nil, err
		}
		// An attempt is made even while the store is known to be silent: it may be
		// silent for another name only.
		e, changed, mine, err := c.enter(ctx, name, by)
		if err != nil {
			return nil, err
		}
		err = c.silence.do(ctx, need{writes: true}, func(ctx context.Context) error {
			select {
			case <-changed:
				return nil
			case <-ctx.Done():
				return storeError(ctx, ctx.Err())
			}
		})
		c.mu.RLock()
		now, failure, panicked := e.phase, e.err, e.panicked
		c.mu.RUnlock()
		switch {
		case now == phaseOpen:
			return e.sequencer, nil
		case now == phaseOpening:
			return nil, err
		case mine && panicked != nil:
			panic(panicked)
		case now == phaseFailed && (mine || !first && panicked == nil && !isRefusal(failure)):
			return nil, failure
		case err != nil:
			return nil, err
		}
		// It was closing, or an attempt failed that began before this call, or for a
		// reason that concerns another client only.
	}
}

// enter returns the entry of a name and what the call waits for. If the name has
// none, enter makes it, and begins to open it: then mine is true.
func (c *Cluster) enter(ctx context.Context, name string, by Creator) (e *entry, changed <-chan struct{}, mine bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e = c.byName[name]
	switch {
	case c.closed:
		return nil, nil, false, errStops
	case e != nil:
		return e, e.changed, false, nil
	case c.full():
		return nil, nil, false, fmt.Errorf("%w: this server already keeps its limit of %d names, and %s is not one of them",
			ErrTooManyNames, c.config.MaxNames, name)
	}
	name = strings.Clone(name)
	e = &entry{changed: make(chan struct{})}
	c.byName[name] = e
	ended := e.changed
	c.openings.Go(func() {
		defer close(ended)
		c.attempt(ctx, name, by, e)
	})
	return e, ended, true, nil
}

// full reports whether there is no room for another name. The caller holds mu.
func (c *Cluster) full() bool { return len(c.byName)-c.closing >= c.config.MaxNames }

// openMost is the longest time for opening a sequencer.
const openMost = 10 * time.Second

// attempt opens the sequencer of a name. The caller's context does not end the
// attempt: a claim that is abandoned while the store answers leaves a node ID
// that no server can use before its window ends. Clients that are less patient
// than an opening takes would get no ID, and use up all node IDs.
func (c *Cluster) attempt(ctx context.Context, name string, by Creator, e *entry) {
	err := errNotOpened
	defer func() {
		panicked := recover()
		c.mu.Lock()
		defer c.mu.Unlock()
		if e.phase == phaseOpening {
			e.phase, e.err, e.panicked = phaseFailed, err, panicked
			delete(c.byName, name)
		}
	}()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), openMost)
	defer cancel()
	defer context.AfterFunc(c.openingUntil, cancel)()
	err = c.open(limited, name, by, e)
	c.note(name, err)
}

var errNotOpened = errors.New("the attempt to open the sequencer did not finish")

// isRefusal reports whether a sequencer was not created because the client may
// not do that in this way, or does it too fast.
func isRefusal(err error) bool {
	return errors.As(err, new(*CreateError)) || errors.As(err, new(*RateError)) || errors.Is(err, errNoPrefix) || errors.Is(err, ErrNoSequencer)
}

// mostFailed is how many failures are remembered.
const mostFailed = 10_000

// note records whether the sequencer of a name could be opened, and logs why
// not: once for a kind of error until it opens, because each request for it
// tries again. The silence of the store and the end of the server have their own
// log.
func (c *Cluster) note(name string, err error) {
	c.mu.Lock()
	last, known := c.failed[name]
	c.sound = c.sound && !isUnreadable(err)
	noted := err != nil && !isRefusal(err)
	if noted {
		if len(c.failed) >= mostFailed {
			clear(c.failed)
		}
		c.failed[name] = failure{err: err, at: time.Now()}
	} else {
		delete(c.failed, name)
	}
	c.mu.Unlock()
	kind, log := kindOf(err), c.config.Options.Logger
	if log == nil || !noted || kind == StoreUnavailable || kind == Draining {
		return
	}
	if !known || kindOf(last.err) != kind {
		log.Warn("sequencer not opened", "sequencer", name, "error", err)
	}
}

var errStops = fmt.Errorf("%w: the server is shutting down", sequencer.ErrClosed)

// open opens the sequencer of a name.
func (c *Cluster) open(ctx context.Context, name string, by Creator, e *entry) error {
	options := c.config.Options
	if c.config.Template != nil {
		if err := c.config.Template(name, &options); err != nil {
			return fmt.Errorf("%w: %w", ErrTemplate, err)
		}
	}
	creator, err := c.find(ctx, name, by, &options)
	if err != nil {
		return err
	}
	if err := options.Nodes.Check(options.Layout); err != nil {
		return err
	}
	if creator != nil {
		ctx = grant.WithOperator(ctx, Client{creator.Name(), creator.Address}.operator())
	}
	if options.Layout.Bits() == 128 {
		err = openAs[firn.ID128](ctx, c, name, e, &options, sequencer.Open128)
	} else {
		err = openAs[firn.ID](ctx, c, name, e, &options, sequencer.Open)
	}
	if creator != nil {
		c.auditCreation(ctx, creator, name, err)
	}
	if err != nil {
		return err
	}
	return c.publish(ctx, e)
}

// auditCreation logs that a client has created a sequencer by using it: also if
// it was created and could then not be opened.
func (c *Cluster) auditCreation(ctx context.Context, creator *auth.Credentials, name string, err error) {
	result := "done"
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ReadyLimit)
		defer cancel()
		switch _, lookup := grant.Lookup(ctx, c.store, name); {
		case errors.Is(lookup, grant.ErrNotFound):
			return
		case lookup != nil:
			result = "unknown"
		}
	}
	audit(ctx, cmp.Or(c.config.Options.Logger, slog.New(slog.DiscardHandler)), Client{creator.Name(), creator.Address}, created, result, name, err)
}

// find looks a sequencer up. If it exists, its own settings replace those of
// options, which are for sequencers that are created. Otherwise find returns the
// client that creates it, if that is allowed.
func (c *Cluster) find(ctx context.Context, name string, by Creator, options *sequencer.Options) (creator *auth.Credentials, err error) {
	client := by.client()
	if wait := c.missed.wait(client); wait > 0 {
		return nil, fmt.Errorf("sequencer %s was not looked up: %w", name,
			&RateError{wait, fmt.Sprintf("this client uses more than %d unknown names per second", time.Second/c.missed.every)})
	}
	info, err := grant.Lookup(ctx, c.store, name)
	switch {
	case err == nil:
		options.Layout, options.MaxAhead, options.Window, options.Prefix = info.Config.Layout, nil, 0, ""
		return nil, nil
	case !errors.Is(err, grant.ErrNotFound):
		return nil, storeError(ctx, err)
	case options.MustExist:
		err = fmt.Errorf("%w %s: this server does not create sequencers by use; create it first", ErrNoSequencer, name)
	default:
		creator, err = by.allowed(name, options.Prefix)
	}
	if err == nil {
		if wait := c.creations.wait(client); wait > 0 {
			err = &CreateError{Name: name, Cause: &RateError{wait,
				fmt.Sprintf("this server creates one sequencer per %v and client by use; create it first (firn sequencer create)", c.creations.every)}}
		}
	}
	if err != nil {
		c.missed.note(client)
		return nil, err
	}
	c.creations.note(client)
	return creator, nil
}

// openAs opens a sequencer, and sets the fields of e for it.
func openAs[I firn.AnyID[I], Q interface {
	source[I]
	openSequencer
}](ctx context.Context, c *Cluster, name string, e *entry, options *sequencer.Options, open func(context.Context, grant.Store, string, *sequencer.Options) (Q, error)) error {
	q, err := open(ctx, c.store, name, options)
	if err != nil {
		return storeError(ctx, err)
	}
	is := q.Config()
	r := &reopener{NewSequencer(is.Layout, q), c, name, e}
	e.openSequencer = q
	e.sequencer = &Sequencer{Layout: is.Layout, Prefix: is.Prefix, Veil: veilOf(c.config.Veil, name, is.Layout), try: r.try, wait: r.wait}
	return nil
}

// publish lets calls use an opened sequencer, unless the Cluster was closed in
// the meantime.
func (c *Cluster) publish(ctx context.Context, e *entry) error {
	c.mu.Lock()
	stops := c.closed
	if !stops {
		e.phase, e.since = phaseOpen, time.Now()
	}
	c.mu.Unlock()
	if stops {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateClose)
		defer cancel()
		_ = e.Close(late) // a node ID that is not given back is free when its window ends
		return errStops
	}
	return nil
}

// storeError makes an error of the store, or of a wait for it, match
// sequencer.ErrUnavailable. An error in causes is returned unchanged.
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
	return fmt.Errorf("%w: %w", sequencer.ErrUnavailable, err)
}

// opened returns the open sequencers by name.
func (c *Cluster) opened() map[string]*entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make(map[string]*entry, len(c.byName))
	for name, e := range c.byName {
		if e.phase == phaseOpen {
			all[name] = e
		}
	}
	return all
}

// Owner returns the owner of this server's node ID of a sequencer, as in its
// record; "" if it holds none.
func (c *Cluster) Owner(name string) string {
	e := c.openEntry(name)
	if e == nil {
		return ""
	}
	if s := e.Status(); s.Phase == grant.Holding || s.Phase == grant.Losing {
		return s.Owner
	}
	return ""
}
