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
	"github.com/firnid/firn/server/internal/config"
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
	c      ClusterConfig
	absent absences

	mu      sync.RWMutex // guards the fields below, and users of all entries
	byName  map[string]*entry
	closed  bool
	lack    *lack           // of the last name that could not be opened; nil if none
	warned  map[string]Kind // why sequencers could not be opened, as the log says
	sound   bool            // no configuration was found unreadable since Ready has looked
	idling  *time.Timer
	closing map[string]chan struct{} // names whose sequencer is closing; closed when it has closed

	census    census
	creations pace // sequencers created by use
	missed    pace // reads of the store for names that it does not have

	retiring     sync.WaitGroup  // retired sequencers that are not closed yet
	openings     sync.WaitGroup  // sequencers that are being opened
	openingUntil context.Context // done when openings must end
	stopOpening  context.CancelFunc
}

var _ Backend = (*Cluster)(nil)

// ClusterConfig is the configuration of a Cluster.
type ClusterConfig struct {
	// Admin administers the store. The Cluster closes it.
	Admin *StoreAdmin

	// Peers are the other servers of the store, to ask for IDs of a sequencer for
	// which this server has no node ID; nil asks none.
	Peers Peers

	// Config is how sequencers are opened. Its Layout, MaxAhead and Window apply
	// to those that are created; a zero layout means firn.Default.
	Config sequencer.Config

	// Acquired is called when a sequencer was opened and has a node ID. It must
	// return at once; nil is allowed.
	Acquired func()

	// MaxNames is how many sequencers may be open at once; 0 means
	// DefaultMaxNames. Opening one more that exists closes the least recently used
	// ones. Creating one more closes only sequencers that have been unused for a
	// while.
	MaxNames int

	// Veil has the keys of veiled IDs; nil gives none.
	Veil veil.Keys

	// Template returns how the sequencer of a name is created and used; nil means
	// as in Config. It is called when a name is first used.
	Template func(name string) (config.Template, error)
}

// ErrNoSequencer is matched by errors for a sequencer that must be created
// before it is used.
var ErrNoSequencer = errors.New("no such sequencer")

// ErrTemplate is matched by errors in the configuration of a name.
var ErrTemplate = errors.New("invalid server configuration")

// An entry is a name whose sequencer is open or being opened.
type entry struct {
	users  int           // calls that wait for it to be open
	turn   chan struct{} // of size 1: held by the call that opens it
	ready  chan struct{} // closed when it is open and the fields below are set
	q      *Sequencer
	attach func(context.Context) error
	close  func(context.Context) error
	stats  func() sequencer.Stats
	state  func() sequencer.State

	made uint64    // IDs made, at the last sample
	used time.Time // when it was opened, or last seen to have made IDs
}

// NewCluster makes a Cluster. It opens nothing yet.
func NewCluster(c ClusterConfig) *Cluster {
	c.Config.Layout = cmp.Or(c.Config.Layout, firn.Default())
	c.MaxNames = cmp.Or(c.MaxNames, DefaultMaxNames)
	until, stop := context.WithCancel(context.Background())
	return &Cluster{StoreAdmin: c.Admin, c: c, byName: make(map[string]*entry), warned: make(map[string]Kind), openingUntil: until, stopOpening: stop}
}

// Sequencer returns the sequencer of a name and opens it at the first call.
func (c *Cluster) Sequencer(ctx context.Context, name string, by Creator) (*Sequencer, error) {
	if q := c.Opened(name); q != nil {
		return q, nil
	}
	if a, ok := c.absent.of(name); ok && !Forwarded(ctx) {
		return c.ofPeers(name, a), nil
	}
	q, err := c.own(ctx, name, by)
	if err != nil {
		return c.elsewhere(ctx, name, err)
	}
	return q, nil
}

// Opened returns the sequencer of a name if it is open.
func (c *Cluster) Opened(name string) *Sequencer {
	if e := c.openEntry(name); e != nil {
		return e.q
	}
	return nil
}

// openEntry returns the entry of a name if its sequencer is open, or nil.
func (c *Cluster) openEntry(name string) *entry {
	c.mu.RLock()
	e := c.byName[name]
	c.mu.RUnlock()
	if e != nil && e.isOpen() {
		return e
	}
	return nil
}

// isOpen reports whether the sequencer is open.
func (e *entry) isOpen() bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
}

// own returns the sequencer of a name, with a node ID of this server.
func (c *Cluster) own(ctx context.Context, name string, by Creator) (*Sequencer, error) {
	if err := c.makeRoom(ctx, name); err != nil {
		return nil, err
	}
	e, err := c.enter(name)
	if err != nil {
		return nil, err
	}
	defer c.leave(name, e)
	// One call opens it. The others wait, and try themselves if that call fails.
	// The attempt is made even while the store is known to be silent: it may be
	// silent for another name only.
	var opened <-chan attempt
	start := func() error {
		var err error
		opened, err = c.startOpening(ctx, strings.Clone(name), by, e)
		return err
	}
	select {
	case e.turn <- struct{}{}:
		if err := start(); err != nil {
			return nil, err
		}
	default:
	}
	var r attempt
	err = c.patience.during(ctx, need{writes: true}, func(ctx context.Context) error {
		if opened == nil {
			select {
			case e.turn <- struct{}{}:
				if err := start(); err != nil {
					return err
				}
			case <-e.ready:
				return nil
			case <-ctx.Done():
				return storeError(ctx, ctx.Err())
			}
		}
		select {
		case r = <-opened:
		case <-ctx.Done():
			select {
			case r = <-opened:
			default:
				return storeError(ctx, ctx.Err())
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.panicked != nil {
		panic(r.panicked)
	}
	if r.err != nil {
		return nil, r.err
	}
	return e.q, nil
}

// An attempt is the result of opening a sequencer.
type attempt struct {
	err      error
	panicked any // the panic of a user's clock or template
}

var errNotOpened = errors.New("the attempt to open the sequencer did not finish")

// openMost is the longest time for opening a sequencer.
const openMost = 10 * time.Second

// startOpening opens the sequencer of a name. The caller has taken its turn,
// which is released at the end. The caller's context does not end the attempt:
// a claim that is abandoned while the store answers leaves a node ID that no
// server can use before its window ends. Clients that are less patient than an
// opening takes would get no ID, and use up all node IDs.
func (c *Cluster) startOpening(ctx context.Context, name string, by Creator, e *entry) (<-chan attempt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		<-e.turn
		return nil, errStops
	}
	e.users++
	opened := make(chan attempt, 1)
	c.openings.Go(func() {
		r := attempt{err: errNotOpened}
		defer func() {
			r.panicked = recover()
			<-e.turn
			c.leave(name, e)
			opened <- r
		}()
		if e.isOpen() {
			r.err = nil
			return
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), openMost)
		defer cancel()
		defer context.AfterFunc(c.openingUntil, cancel)()
		r.err = c.open(limited, name, by, e)
		c.noteLack(name, r.err)
	})
	return opened, nil
}

// enter finds or makes the entry of a name; a call of leave must follow.
func (c *Cluster) enter(name string) (*entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byName[name]
	switch {
	case c.closed:
		return nil, errStops
	case e != nil:
	case len(c.byName) >= c.c.MaxNames:
		return nil, fmt.Errorf("%w: this server already keeps its limit of %d names, and %s is not one of them", ErrTooManyNames, c.c.MaxNames, name)
	default:
		e = &entry{turn: make(chan struct{}, 1), ready: make(chan struct{})}
		c.byName[strings.Clone(name)] = e
	}
	e.users++
	return e, nil
}

// leave removes the entry of a name that could not be opened, if no call waits.
func (c *Cluster) leave(name string, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users--
	if e.users == 0 && !e.isOpen() {
		delete(c.byName, name)
	}
}

var errStops = fmt.Errorf("%w: the server is shutting down", sequencer.ErrClosed)

// open opens the sequencer of a name.
func (c *Cluster) open(ctx context.Context, name string, by Creator, e *entry) error {
	config, existing, err := c.configOf(name)
	if err != nil {
		return err
	}
	creator, err := c.find(ctx, name, by, existing, &config)
	if err != nil {
		return err
	}
	if err := config.Nodes.Check(config.Layout); err != nil {
		return err
	}
	if config.Layout.Bits() == 128 {
		err = openInto[firn.ID128](ctx, c, name, e, &config, sequencer.Open128)
	} else {
		err = openInto[firn.ID](ctx, c, name, e, &config, sequencer.Open)
	}
	if err != nil {
		return err
	}
	if creator != nil {
		audit(ctx, cmp.Or(c.c.Config.Logger, slog.New(slog.DiscardHandler)), ClientOf(creator), created, name, nil)
	}
	return c.publish(ctx, e)
}

// configOf returns how the sequencer of a name is created and used, and whether
// it must exist.
func (c *Cluster) configOf(name string) (config sequencer.Config, existing bool, err error) {
	config = c.c.Config
	if c.c.Template == nil {
		return config, false, nil
	}
	t, err := c.c.Template(name)
	if err != nil {
		return config, false, fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	if !t.Layout.IsZero() {
		config.Layout = t.Layout
	}
	if t.MaxAhead != nil {
		config.MaxAhead = t.MaxAhead
	}
	if t.Window != 0 {
		config.Window = t.Window
	}
	config.Prefix, config.LowBits = t.Prefix, t.LowBits
	if t.Nodes != nil {
		config.Nodes = t.Nodes
	}
	return config, t.Existing, nil
}

// find looks a sequencer up. If it exists, its own settings replace those of
// config, which are for sequencers that are created. Otherwise find returns the
// client that creates it, if that is allowed.
func (c *Cluster) find(ctx context.Context, name string, by Creator, existing bool, config *sequencer.Config) (creator *auth.Credentials, err error) {
	if wait := c.missed.wait(missBurst, missEvery); wait > 0 {
		return nil, fmt.Errorf("sequencer %s was not looked up: %w", name, &PaceError{wait, fmt.Sprintf("more than %d unknown names per second are used", time.Second/missEvery)})
	}
	info, err := grant.Lookup(ctx, c.store, name)
	switch {
	case err == nil:
		config.Layout, config.MaxAhead, config.Window, config.Prefix, config.LowBits = info.Config.Layout, nil, 0, "", 0
		return nil, nil
	case !errors.Is(err, grant.ErrNotFound):
		return nil, storeError(ctx, err)
	case existing:
		err = fmt.Errorf("%w %s: this server does not create sequencers by use; create it first", ErrNoSequencer, name)
	default:
		creator, err = by.allowed(name, config.Prefix)
	}
	if err == nil {
		if wait := c.creations.wait(createBurst, createEvery); wait > 0 {
			err = &CreateError{Name: name, Cause: &PaceError{wait, fmt.Sprintf("this server creates one sequencer per %v by use; create it first (firn sequencer create)", createEvery)}}
		}
	}
	if err != nil {
		c.missed.note(missEvery)
		return nil, err
	}
	c.creations.note(createEvery)
	return creator, nil
}

// openInto opens a sequencer, and sets the fields of e for it.
func openInto[I firn.AnyID[I], M member[I]](ctx context.Context, c *Cluster, name string, e *entry, config *sequencer.Config, open func(context.Context, grant.Store, string, *sequencer.Config) (M, error)) error {
	q, err := open(ctx, c.store, name, config)
	if c.warn(name, err); err != nil {
		return storeError(ctx, err)
	}
	setOpened[I](c, name, e, q)
	return nil
}

// publish lets calls use an opened sequencer, unless the Cluster was closed in
// the meantime.
func (c *Cluster) publish(ctx context.Context, e *entry) error {
	c.mu.Lock()
	stops := c.closed
	if !stops {
		e.used = time.Now()
		close(e.ready)
		c.watchIdle()
	}
	c.mu.Unlock()
	if stops {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateClose)
		defer cancel()
		_ = e.close(late) // a node ID that is not given back is free when its window ends
		return errStops
	}
	if c.c.Acquired != nil {
		c.c.Acquired()
	}
	return nil
}

// warn logs why a sequencer that exists could not be opened: once for a kind of
// error until it opens, because each request for it tries again.
func (c *Cluster) warn(name string, err error) {
	kind := kindOf(err)
	c.mu.Lock()
	last, warned := c.warned[name]
	if err == nil {
		delete(c.warned, name)
	} else {
		c.warned[name] = kind
	}
	c.mu.Unlock()
	if log := c.c.Config.Logger; log != nil && err != nil && !(warned && last == kind) {
		log.Warn("sequencer not opened", "sequencer", name, "error", err)
	}
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

// Stats calls yield for every sequencer that is open.
func (c *Cluster) Stats(yield func(name string, s sequencer.Stats)) {
	all, _ := c.opened()
	for name, e := range all {
		yield(name, e.stats())
	}
}

// opened returns the open sequencers by name, and the last lack.
func (c *Cluster) opened() (map[string]*entry, *lack) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	open := make(map[string]*entry, len(c.byName))
	for name, e := range c.byName {
		if e.isOpen() {
			open[name] = e
		}
	}
	return open, c.lack
}

// State returns the state of a sequencer at this server; ok is false if it is
// not open.
func (c *Cluster) State(name string) (s sequencer.State, ok bool) {
	if e := c.openEntry(name); e != nil {
		return e.state(), true
	}
	return s, false
}

// Owner returns the owner of this server's node ID of a sequencer, as in its
// record; "" if it holds none.
func (c *Cluster) Owner(name string) string {
	s, ok := c.State(name)
	if !ok || s.Phase != grant.Holding && s.Phase != grant.Losing {
		return ""
	}
	return s.Owner
}
