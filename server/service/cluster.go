package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
)

// A Cluster is a Backend whose node IDs are kept in a store, so that any
// number of servers give IDs of the same names. A sequencer is opened when its
// name is first used, with the layout it was created with, or created with that
// of the configuration.
//
// It is safe for use by many goroutines at once. It must be made by NewCluster,
// and ends with Close.
type Cluster struct {
	*Fleet
	c      ClusterConfig
	absent absences

	mu     sync.RWMutex // guards what follows, and users of all entries
	byName map[string]*opening
	closed bool
	lack   *lack // of the name that could not be opened last; nil if none
	idling *time.Timer
	closes map[string]chan struct{} // names whose sequencer is being closed; closed when it is

	near  suggestions
	alike namesakes

	retiring sync.WaitGroup  // of what was retired, until it is closed
	openings sync.WaitGroup  // of sequencers
	opens    context.Context // of openings
	endOpens context.CancelFunc
}

var _ Backend = (*Cluster)(nil)

// ClusterConfig is the configuration of a Cluster.
type ClusterConfig struct {
	// Fleet is that of the store. The Cluster closes it.
	Fleet *Fleet

	// Peers are the other servers of the store, for sequencers that this one has
	// no node ID of; nil means that none is asked.
	Peers Peers

	// Config is how sequencers are opened. Its Layout, MaxAhead and Window are
	// for those that are created; firn.Default if the layout is zero.
	Config sequencer.Config

	// Acquired is called when a sequencer was opened, with a node ID. It returns
	// at once; nil means that nobody wants to know.
	Acquired func()

	// Alike is called, in the background and once for a name, if a sequencer was
	// created by its first use whose name may be another one's, mistyped; nil
	// means that nobody wants to know.
	Alike func(name, other string)

	// MaxNames is how many sequencers are open at once; 0 means DefaultMaxNames.
	// One more closes those that were not used for longest, if it exists; one that
	// is to be created closes only those that were not used for a while.
	MaxNames int

	// MaxIdle is how long a sequencer stays open that is not used; 0 means
	// DefaultMaxIdle.
	MaxIdle time.Duration

	// Template says how the sequencer of a name is created and used; nil means as
	// Config says. It is asked when a name is first used.
	Template func(name string) (Template, error)
}

// A Template says in what a sequencer is not as ClusterConfig.Config says. Its
// zero value says nothing.
type Template struct {
	Layout   firn.Layout      // of one that is created
	MaxAhead *time.Duration   // likewise
	Window   time.Duration    // likewise
	Nodes    *sequencer.Range // that this server may take
	Existing bool             // it is not created, and must exist
}

// ErrNoSequencer is what an error matches that says that a sequencer must be
// created before it is used.
var ErrNoSequencer = errors.New("there is no such sequencer")

// ErrTemplate is what an error matches that says that what is configured for a
// name is wrong.
var ErrTemplate = errors.New("the server's configuration is wrong")

// An opening is a name's sequencer, once it is open.
type opening struct {
	users  int           // calls that wait for it to be open
	turn   chan struct{} // of size 1: holds whoever opens it
	ready  chan struct{} // closed when it is open; then what follows is set
	q      Sequencer
	attach func(context.Context) error
	close  func(context.Context) error
	stats  func() sequencer.Stats
	state  func() sequencer.State

	made uint64    // IDs, when it was looked at last
	used time.Time // when it was opened, or seen to have made some
}

// NewCluster makes a Cluster. It opens nothing yet.
func NewCluster(c ClusterConfig) *Cluster {
	if c.Config.Layout.IsZero() {
		c.Config.Layout = firn.Default()
	}
	if c.MaxNames == 0 {
		c.MaxNames = DefaultMaxNames
	}
	if c.MaxIdle == 0 {
		c.MaxIdle = DefaultMaxIdle
	}
	opens, endOpens := context.WithCancel(context.Background())
	return &Cluster{Fleet: c.Fleet, c: c, byName: make(map[string]*opening), opens: opens, endOpens: endOpens}
}

// Sequencer returns the sequencer of a name, which it opens at the first call.
func (c *Cluster) Sequencer(ctx context.Context, name string) (Sequencer, error) {
	if q, ok := c.Opened(name); ok {
		return q, nil
	}
	if a, ok := c.absent.of(name); ok && !Forwarded(ctx) {
		return c.ofPeers(name, a), nil
	}
	q, err := c.own(ctx, name)
	if err != nil {
		return c.elsewhere(ctx, name, err)
	}
	return q, nil
}

// Opened returns the sequencer of a name if it is open.
func (c *Cluster) Opened(name string) (Sequencer, bool) {
	if o := c.entry(name); o != nil {
		return o.q, true
	}
	return Sequencer{}, false
}

// entry is that of a name if its sequencer is open, or nil.
func (c *Cluster) entry(name string) *opening {
	c.mu.RLock()
	o := c.byName[name]
	c.mu.RUnlock()
	if o != nil {
		select {
		case <-o.ready:
			return o
		default:
		}
	}
	return nil
}

// own returns the sequencer of a name, with a node ID of this server.
func (c *Cluster) own(ctx context.Context, name string) (Sequencer, error) {
	if err := c.makeRoom(ctx, name); err != nil {
		return Sequencer{}, err
	}
	o, err := c.enter(name)
	if err != nil {
		return Sequencer{}, err
	}
	defer c.leave(name, o)
	// One opens it; the others wait, and try themselves where that one failed. It
	// is tried also where nobody waits: that the store is silent may be so for
	// another name alone.
	var opened <-chan attempt
	start := func() error {
		var err error
		opened, err = c.startOpening(ctx, strings.Clone(name), o)
		return err
	}
	select {
	case o.turn <- struct{}{}:
		if err := start(); err != nil {
			return Sequencer{}, err
		}
	default:
	}
	var r attempt
	err = c.patience.during(ctx, need{writes: true}, func(ctx context.Context) error {
		if opened == nil {
			select {
			case o.turn <- struct{}{}:
				if err := start(); err != nil {
					return err
				}
			case <-o.ready:
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
		return Sequencer{}, err
	}
	if r.panicked != nil {
		panic(r.panicked)
	}
	if r.err != nil {
		return Sequencer{}, r.err
	}
	return o.q, nil
}

// An attempt is what came of opening a sequencer.
type attempt struct {
	err      error
	panicked any // what a clock or template of the user panicked with
}

var errNotOpened = errors.New("the opening of the sequencer did not come to its end")

// openMost is how long it may take to open a sequencer.
const openMost = 10 * time.Second

// startOpening opens the sequencer of a name, whose turn the caller has taken;
// it is given back at the end. The caller's context does not end it. A claim
// that is given up while the store answers leaves a node ID that nobody can use
// before its window ends, so that clients with less patience than it takes
// would get no ID, and use all node IDs up.
func (c *Cluster) startOpening(ctx context.Context, name string, o *opening) (<-chan attempt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		<-o.turn
		return nil, errStops
	}
	o.users++
	opened := make(chan attempt, 1)
	c.openings.Go(func() {
		r := attempt{err: errNotOpened}
		defer func() {
			r.panicked = recover()
			<-o.turn
			c.leave(name, o)
			opened <- r
		}()
		select {
		case <-o.ready:
			r.err = nil
			return
		default:
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), openMost)
		defer cancel()
		defer context.AfterFunc(c.opens, cancel)()
		r.err = c.open(limited, name, o)
		c.noteLack(name, r.err)
	})
	return opened, nil
}

// enter finds or makes the entry of a name; leave must follow.
func (c *Cluster) enter(name string) (*opening, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.byName[name]
	switch {
	case c.closed:
		return nil, errStops
	case o != nil:
	case len(c.byName) >= c.c.MaxNames:
		return nil, fmt.Errorf("%w: this server keeps %d names, and %s is not one of them", ErrTooManyNames, c.c.MaxNames, name)
	default:
		o = &opening{turn: make(chan struct{}, 1), ready: make(chan struct{})}
		c.byName[strings.Clone(name)] = o
	}
	o.users++
	return o, nil
}

// leave makes room where a name could not be opened and nobody else tries to.
func (c *Cluster) leave(name string, o *opening) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.users--
	select {
	case <-o.ready:
	default:
		if o.users == 0 {
			delete(c.byName, name)
		}
	}
}

var errStops = fmt.Errorf("%w: the server stops", sequencer.ErrClosed)

// open opens the sequencer of a name.
func (c *Cluster) open(ctx context.Context, name string, o *opening) error {
	open := c.c.Config
	existing := false
	if c.c.Template != nil {
		t, err := c.c.Template(name)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrTemplate, err)
		}
		existing = t.Existing
		if !t.Layout.IsZero() {
			open.Layout = t.Layout
		}
		if t.MaxAhead != nil {
			open.MaxAhead = t.MaxAhead
		}
		if t.Window != 0 {
			open.Window = t.Window
		}
		if t.Nodes != nil {
			open.Nodes = t.Nodes
		}
	}
	if err := mayLook(ctx, name); err != nil {
		return err
	}
	info, err := grant.Lookup(ctx, c.store, name)
	switch {
	case err == nil:
		// As it is: what was given is for those that are created here.
		open.Layout, open.MaxAhead, open.Window = info.Config.Layout, nil, 0
	case !errors.Is(err, grant.ErrNotFound):
		return storeError(ctx, err)
	case existing:
		missed(ctx, name)
		return c.noSequencer(ctx, name)
	default:
		if err := mayCreate(ctx, name); err != nil {
			missed(ctx, name)
			return err
		}
		c.created(name)
	}
	if r := open.Nodes; r != nil && r.Hi > open.Layout.MaxNode() {
		return fmt.Errorf("this server may take the node IDs %d..%d, and the layout of sequencer %s has 0..%d", r.Lo, r.Hi, name, open.Layout.MaxNode())
	}
	if open.Layout.Bits() == 128 {
		q, err := sequencer.Open128(ctx, c.store, name, &open)
		if err != nil {
			return storeError(ctx, err)
		}
		s := sourceOf(c, name, o, q, Peers.NextBatch128)
		o.q.Source128, o.q.Try128 = s, s
	} else {
		q, err := sequencer.Open(ctx, c.store, name, &open)
		if err != nil {
			return storeError(ctx, err)
		}
		s := sourceOf(c, name, o, q, Peers.NextBatch)
		o.q.Source, o.q.Try = s, s
	}
	c.mu.Lock()
	stops := c.closed
	if !stops {
		o.used = time.Now()
		close(o.ready)
		c.watchIdle()
	}
	c.mu.Unlock()
	if stops {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateClose)
		defer cancel()
		_ = o.close(late) // what is not given back is free when its window ends
		return errStops
	}
	if c.c.Acquired != nil {
		c.c.Acquired()
	}
	return nil
}

// storeError makes an error of the store itself, or of a wait for it, one that
// is sequencer.ErrUnavailable. One that says what it is stays: see causes.
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

// retire forgets an open sequencer that is of no use any more, and closes it.
func (c *Cluster) retire(name string, o *opening) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retireLocked(name, o)
}

// retireLocked is retire for a caller that holds c.mu. While the sequencer is
// closed, nobody opens it: its node ID may be the only one that this server may
// have.
func (c *Cluster) retireLocked(name string, o *opening) {
	if c.byName[name] != o || c.closed {
		return
	}
	delete(c.byName, name)
	done := make(chan struct{})
	if c.closes == nil {
		c.closes = make(map[string]chan struct{})
	}
	c.closes[name] = done
	c.retiring.Add(1)
	go func() {
		defer c.retiring.Done()
		ctx, cancel := context.WithTimeout(context.Background(), lateClose)
		defer cancel()
		_ = o.close(ctx) // what is not given back is free when its window ends
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.closes[name] == done {
			delete(c.closes, name)
		}
		close(done)
	}()
}

// Stats calls yield for every sequencer that is open.
func (c *Cluster) Stats(yield func(name string, s sequencer.Stats)) {
	all, _ := c.opened()
	for name, o := range all {
		yield(name, o.stats())
	}
}

// opened are the sequencers that are open, by name, and what was lacking last.
func (c *Cluster) opened() (map[string]*opening, *lack) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	open := make(map[string]*opening, len(c.byName))
	for name, o := range c.byName {
		select {
		case <-o.ready:
			open[name] = o
		default:
		}
	}
	return open, c.lack
}

// State is what this server has of a sequencer; ok is false if it is not open.
func (c *Cluster) State(name string) (s sequencer.State, ok bool) {
	if o := c.entry(name); o != nil {
		return o.state(), true
	}
	return s, false
}

// A lack is why this server could acquire no node ID of a sequencer: no node ID
// is free, or the server's clock is refused.
type lack struct {
	name string
	err  error
	full *grant.ExhaustedError // nil if the clock is refused
}

// lackOf returns the lack that an error of a sequencer is, or nil.
func lackOf(name string, err error) *lack {
	l := &lack{name: name, err: err}
	switch {
	case errors.As(err, &l.full) && l.full.Sequencer == name:
		return l
	case errors.Is(err, grant.ErrClockAhead), errors.Is(err, grant.ErrClockBehind):
		l.full = nil
		return l
	}
	return nil
}

// noteLack notes whether there was a node ID for a name.
func (c *Cluster) noteLack(name string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := lackOf(name, err); l != nil {
		c.lack = l
	} else if c.lack != nil && c.lack.name == name {
		c.lack = nil
	}
}

// Ready returns nil if this server can make IDs as far as it knows: some
// sequencer has its node ID, or the store answers, takes writes, and no
// sequencer lacked one. Otherwise the error is what the store said, whose node
// IDs are held, or why the clock is refused.
//
// After a lack Ready tries again, as no client asks a server that is not ready.
// If no node ID was free, another server that can be asked
// (ClusterConfig.Peers) is as good. If the clock is refused it is not: nothing
// that others give can be checked.
func (c *Cluster) Ready(ctx context.Context) error {
	now := time.Now()
	all, last := c.opened()
	isOpen := false
	for name, o := range all { // not under the lock: statistics ask the clock
		s := o.stats().State
		if s.Phase == sequencer.Attached && s.Until.After(now) {
			return nil
		}
		if l := lackOf(name, s.Err); l != nil {
			last, isOpen = l, true // it keeps looking by itself
		}
	}
	if _, err := c.store.Get(ctx, readyKey); err != nil {
		return storeError(ctx, err)
	}
	if c.patience.silent != nil { // it may read, and take no writes
		if silent := (need{writes: true}).vain(c.patience.silent()); silent > 0 {
			return &silentError{silent}
		}
	}
	switch {
	case last == nil || last.full != nil && c.c.Peers != nil && c.c.Peers.CanHelp(ctx, last.name):
		return nil
	case isOpen:
		return last.err
	}
	err := error(nil)
	if last.full != nil {
		err = c.stillLacks(ctx, last.full)
	}
	if err == nil {
		_, err = c.own(ctx, last.name)
	}
	if lackOf(last.name, err) != nil {
		return err
	}
	if ctx.Err() == nil { // otherwise, there was no time to find out
		c.noteLack(last.name, nil)
	}
	return nil
}

// stillLacks returns nil if a node ID may be free by now that was not, and else
// an error: that none is, or why none is needed any more.
func (c *Cluster) stillLacks(ctx context.Context, was *grant.ExhaustedError) error {
	now := time.Now()
	// It may be gone, and is not to be created again here.
	info, err := grant.Lookup(ctx, c.store, was.Sequencer)
	switch {
	case err != nil:
		return err
	case info.State != grant.Attached:
		return grant.ErrDetached
	case was.Ahead:
		if now.Before(was.Free) {
			return was
		}
		return nil
	}
	is := &grant.ExhaustedError{Sequencer: was.Sequencer, Lo: was.Lo, Hi: was.Hi}
	held := uint64(0)
	err = grant.Nodes(ctx, c.store, was.Sequencer, func(n grant.NodeInfo, err error) bool {
		switch {
		case n.Node < was.Lo || n.Node > was.Hi:
		case err != nil:
			held++ // nobody can take it
		case n.Held && n.Until.After(now):
			held++
			if is.Free.IsZero() || n.Until.Before(is.Free) {
				is.Free = n.Until
			}
		}
		return true
	})
	if err != nil || held <= was.Hi-was.Lo {
		return err
	}
	return is
}

// readyKey is read to see whether the store answers. Nobody writes it.
const readyKey = "ready"

// lateClose is how long a sequencer may take to give its number back that was
// opened while the server stops.
const lateClose = 2 * time.Second

// Close gives all node IDs back, all at once. An error says how many could
// not be given back before the context was done; these are free when their
// windows end.
func (c *Cluster) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	if c.idling != nil {
		c.idling.Stop()
	}
	var open []*opening
	for _, o := range c.byName {
		select {
		case <-o.ready:
			open = append(open, o)
		default:
		}
	}
	c.mu.Unlock()
	c.patience.close()
	// Each closes what it opens. One that is cancelled may leave its node ID
	// claimed, so it is not before it must be.
	stop := context.AfterFunc(ctx, c.endOpens)
	c.openings.Wait()
	stop()
	c.endOpens()
	failed, first := giveBack(ctx, open)
	c.retiring.Wait()
	if failed > 0 {
		return fmt.Errorf("%d of %d node IDs were not given back: %w", failed, len(open), first)
	}
	return nil
}

// A store is asked to take back closingAtOnce node IDs at a time: with all at
// once, each would wait for so long that it is given up. It is not asked any
// more once it has taken none for closingStalls.
const (
	closingAtOnce = 64
	closingStalls = 5 * time.Second
)

// giveBack closes sequencers until ctx is done, and returns how many of their
// node IDs were not given back, and why the first of these was not.
func giveBack(ctx context.Context, open []*opening) (failed int, first error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stalled := time.AfterFunc(closingStalls, stop)
	defer stalled.Stop()
	var mu sync.Mutex // guards failed and first
	turns := make(chan struct{}, closingAtOnce)
	var closing sync.WaitGroup
	for _, o := range open {
		closing.Go(func() {
			select {
			case turns <- struct{}{}:
				defer func() { <-turns }()
			case <-ctx.Done(): // nothing more is asked of the store
			}
			err := o.close(ctx)
			if err == nil {
				stalled.Reset(closingStalls)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if failed++; failed == 1 {
				first = err
			}
		})
	}
	closing.Wait()
	return failed, first
}
