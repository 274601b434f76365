package sequencer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// A SequencerOf is a Sequencer of 64-bit or 128-bit IDs. It is safe for concurrent
// use by multiple goroutines. It must be made by Open or Open128, and ends with
// Close.
type SequencerOf[I firn.AnyID[I]] struct {
	name    string
	config  grant.Config
	patient bool // waits for a free node ID
	options firn.Options
	create  func(firn.Layout, firn.Grant, *firn.Options) (*firn.GeneratorOf[I], error)
	keeper  *grant.Keeper

	current atomic.Pointer[firn.GeneratorOf[I]] // nil while there is no generator

	mu       sync.Mutex // guards the fields below; held only briefly
	mark     time.Time  // exclusive end of the times that sealed generators used
	before   firn.Stats // of sealed generators
	wanted   bool       // a node ID is: the last call was Join, not Leave
	closed   bool
	unusable error // why the last grant could not be used
}

// check returns an error if a layout does not suit this process. twin is the
// function for the other width.
func (q *SequencerOf[I]) check(l firn.Layout, o *Options, name string, bits int, twin string) error {
	if l.Bits() != bits {
		return fmt.Errorf("sequencer: sequencer %s has IDs of %d bits: use %s", name, l.Bits(), twin)
	}
	if err := o.Nodes.Check(l); err != nil {
		return err
	}
	// A layout that cannot be generated is reported now, not when a grant
	// begins.
	_, err := q.create(l, firn.Grant{From: l.Epoch().Add(time.Hour), Until: l.Epoch().Add(2 * time.Hour)}, nil)
	return err
}

// open opens a member of a sequencer and, unless the Options say otherwise,
// joins it. bits and twin are those of check, and create makes its generators.
func open[I firn.AnyID[I]](ctx context.Context, s grant.Store, name string, o *Options, bits int, twin string,
	create func(firn.Layout, firn.Grant, *firn.Options) (*firn.GeneratorOf[I], error)) (*SequencerOf[I], error) {
	q := &SequencerOf[I]{create: create}
	if o == nil {
		o = new(Options)
	}
	info, err := o.prepare(ctx, s, name, func(l firn.Layout) error { return q.check(l, o, name, bits, twin) })
	if err != nil {
		return nil, err
	}
	if o.Window != 0 && o.Window != info.Config.Window && o.Logger != nil {
		o.Logger.InfoContext(ctx, "using the sequencer's window, not the configured one",
			"sequencer", name, "window", info.Config.Window, "configured", o.Window)
	}
	q.name, q.config, q.patient = info.Name, info.Config, o.WaitForNode
	q.options = firn.Options{Now: o.Now, MaxAhead: q.config.MaxAhead}
	q.keeper = grant.NewKeeper(s, q.name, &q.config, holder[I]{q}, &o.Member)
	if o.Idle {
		return q, nil
	}
	isOpen := false
	defer func() { // deferred, because the context is the caller's and may panic
		if isOpen {
			return
		}
		// A node ID may have been claimed, or a claim may be in progress. The
		// caller may retry with contexts that are too short for this store, so
		// the node ID is given back even if the context has ended.
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			// One request in progress, and the one that gives it back.
			late, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = q.Close(late)
		}()
		select {
		case <-closed:
		case <-ctx.Done():
		}
	}()
	if err := q.Join(ctx); err != nil {
		return nil, err
	}
	isOpen = true
	return q, nil
}

// inform informs the Keeper whether a node ID is wanted, and waits until it
// knows. The context ends only the wait.
func (q *SequencerOf[I]) inform(ctx context.Context, wanted bool) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return firn.ErrClosed
	}
	q.wanted = wanted
	if wanted { // under the lock, so that the Keeper gets concurrent calls in this order
		_ = q.keeper.Join(ended)
	} else {
		_ = q.keeper.Leave(ended)
	}
	q.mu.Unlock()
	return q.keeper.Demand(ctx) // the Keeper knows what came before
}

// A holder is a member as seen by its Keeper. A member does not have these
// methods itself, because a caller could then use a node ID without a grant.
type holder[I firn.AnyID[I]] struct{ member *SequencerOf[I] }

// Begin starts or switches the generator under a grant.
func (h holder[I]) Begin(g firn.Grant) error {
	err := h.member.begin(g)
	if err != nil {
		h.member.seal() // nothing of the previous grant is used either
	}
	h.member.mu.Lock()
	defer h.member.mu.Unlock()
	h.member.unusable = err
	return err
}

// Extend moves the end of the window to a later time.
func (h holder[I]) Extend(until time.Time) error {
	if current := h.member.current.Load(); current != nil {
		return current.Extend(until)
	}
	return nil
}

func (h holder[I]) Seal()           { h.member.seal() }
func (h holder[I]) Used() time.Time { return h.member.used() }

// begin makes a generator, which lives until it is sealed, or switches the
// existing one.
func (q *SequencerOf[I]) begin(g firn.Grant) error {
	if current := q.current.Load(); current != nil {
		return current.Switch(g)
	}
	q.mu.Lock()
	mark := q.mark
	q.mu.Unlock()
	if g.From.Before(mark) {
		g.From = mark // the order of IDs within the process
	}
	next, err := q.create(q.config.Layout, g, &q.options)
	if err != nil {
		return err
	}
	q.current.Store(next)
	return nil
}

// seal ends the use of the current grant.
func (q *SequencerOf[I]) seal() {
	current := q.current.Load()
	if current == nil {
		return
	}
	mark := current.Seal()
	made := current.Stats() // without the lock, because it calls the clock, which may panic
	q.mu.Lock()
	defer q.mu.Unlock()
	if mark.After(q.mark) {
		q.mark = mark
	}
	q.before = sum(q.before, made)
	q.current.Store(nil)
}

// used returns the exclusive end of the times used.
func (q *SequencerOf[I]) used() time.Time {
	q.mu.Lock()
	used := q.mark
	q.mu.Unlock()
	if current := q.current.Load(); current != nil {
		if now := current.Used(); now.After(used) {
			used = now
		}
	}
	return used
}

// sum adds the counts of a sealed generator.
func sum(a, b firn.Stats) firn.Stats {
	return firn.Stats{
		IDs: a.IDs + b.IDs, Batches: a.Batches + b.Batches, Waits: a.Waits + b.Waits,
		TotalWait: a.TotalWait + b.TotalWait,
	}
}

// hasEnded reports whether err means that the generator's window does not allow
// the request.
func hasEnded(err error) bool {
	return errors.Is(err, firn.ErrGrantOver) || errors.Is(err, firn.ErrSealed)
}

// do calls try with the generator, and again whenever there is another window,
// until its error is not that the window has ended.
func (q *SequencerOf[I]) do(ctx context.Context, try func(*firn.GeneratorOf[I]) error) error {
	needContext(ctx)
	for {
		// Before the attempt, so that no later change is missed.
		status, changed := q.keeper.Status()
		if current := q.current.Load(); current != nil {
			if err := try(current); !hasEnded(err) {
				return err
			}
		}
		if refused := q.refused(status); refused != nil {
			q.want() // so that changes are noticed soon
			return refused
		}
		if err := q.keeper.Demand(ctx); err != nil {
			return q.gaveUp(err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return q.gaveUp(ctx.Err())
		}
	}
}

// checkBatch rejects a batch of n IDs that may fit no window. Every window has
// room for the IDs of a tick.
func (q *SequencerOf[I]) checkBatch(n int) error {
	if n < 1 || uint64(n-1) <= q.config.Layout.MaxSeq() {
		return nil // the generator rejects sizes below 1
	}
	return q.checkLong(n)
}

// checkLong is checkBatch for more IDs than those of a tick. A window is not
// renewed for less than a twelfth of its length, so a batch has at most the rest.
func (q *SequencerOf[I]) checkLong(n int) error {
	l, window := q.config.Layout, q.Config().Window
	if uint64(n-1)/(l.MaxSeq()+1) < uint64((window-window/12)/l.Unit()) {
		return nil
	}
	return fmt.Errorf("%w: a window of sequencer %s is %v long, and a batch spans no more than 11/12 of it: ask "+
		"for fewer IDs at a time, or use Fill", firn.ErrBatchTooLarge, q.name, window)
}

// needContext panics if ctx is nil, as in package firn.
func needContext(ctx context.Context) {
	if ctx == nil {
		panic("sequencer: the context is nil: pass context.Background() to wait for as long as it takes")
	}
}

// gaveUp returns the error of a call whose context is done.
func (q *SequencerOf[I]) gaveUp(err error) error {
	if q.isClosed() {
		return fmt.Errorf("%w: sequencer %s", firn.ErrClosed, q.name)
	}
	switch status, _ := q.keeper.Status(); {
	case status.Err == nil:
		return fmt.Errorf("sequencer %s: %w", q.name, err)
	case saysWhy(status.Err):
		return fmt.Errorf("sequencer %s: %w: %w", q.name, err, status.Err)
	default:
		return fmt.Errorf("%w: sequencer %s: %w: %w", ErrUnavailable, q.name, err, status.Err)
	}
}

// saysWhy reports whether err describes a state of the store or the clock, as
// opposed to a failure of the store.
func saysWhy(err error) bool {
	_, clock := errors.AsType[*firn.ClockError](err)
	return clock || grant.IsFinal(err) || errors.Is(err, grant.ErrClockAhead) || errors.Is(err, grant.ErrNodesExhausted)
}

// refused returns why waiting for a window does not help, or nil.
func (q *SequencerOf[I]) refused(status grant.Status) error {
	q.mu.Lock()
	closed, wanted, unusable := q.closed, q.wanted, q.unusable
	q.mu.Unlock()
	switch {
	case closed:
		return fmt.Errorf("%w: sequencer %s", firn.ErrClosed, q.name)
	case !wanted:
		return fmt.Errorf("%w: %s", ErrNotJoined, q.name)
	case status.Err == nil:
		return unusable
	case errors.Is(status.Err, grant.ErrNodesExhausted) && !q.patient, grant.IsFinal(status.Err):
		return status.Err
	}
	return nil
}

// Join acquires a node ID, so that IDs can be made, and waits until it has
// one. If none is free, the error is grant.ErrNodesExhausted, unless
// Options.WaitForNode is set. If the process has already joined, Join does
// nothing. The context only ends the wait: the process keeps trying to acquire
// a node ID until Leave.
func (q *SequencerOf[I]) Join(ctx context.Context) error {
	// Even if a node ID is held: the Keeper may be giving it back because of a
	// recently abandoned Leave.
	if err := q.inform(ctx, true); err != nil {
		return q.gaveUp(err)
	}
	var refused error
	err := q.keeper.Wait(ctx, func(s grant.Status) bool {
		if s.Phase == grant.Holding {
			s = grant.Status{Phase: s.Phase} // renewals may fail
		}
		refused = q.refused(s)
		return refused != nil || s.Phase == grant.Holding
	})
	if err == nil {
		return refused
	}
	if ended := ctx.Err(); ended != nil {
		err = ended // gaveUp adds the rest
	}
	return q.gaveUp(err)
}

// Leave gives the node ID back and waits until the store has recorded that. No
// IDs are made until Join. If the context ends first, Leave returns an
// error, and the node ID is given back when the store answers. If the store
// fails 20 times, or went back to an earlier state, Leave returns an error,
// and the node ID becomes free when its window ends. A concurrent Join also
// ends the wait.
func (q *SequencerOf[I]) Leave(ctx context.Context) error {
	err := q.inform(ctx, false)
	if err == nil {
		var kept error
		err = q.keeper.Wait(ctx, func(s grant.Status) bool {
			q.mu.Lock()
			defer q.mu.Unlock()
			if s.Phase == grant.Idle {
				kept = s.Err
			}
			return s.Phase == grant.Idle || q.wanted
		})
		if err == nil {
			err = kept
		}
	}
	switch {
	case err == nil:
		return nil
	case q.isClosed():
		return fmt.Errorf("%w: sequencer %s", firn.ErrClosed, q.name)
	case saysWhy(err):
		return fmt.Errorf("sequencer %s: the node ID was not given back and becomes free when its window ends: %w",
			q.name, err)
	}
	return fmt.Errorf("%w: sequencer %s: the node ID has not been given back yet and becomes free at the latest "+
		"when its window ends: %w", ErrUnavailable, q.name, err)
}

// Close gives the node ID back and closes the sequencer. If the context ends
// first, Close closes the sequencer anyway and returns an error; the node ID
// then becomes free when its window ends. Calling Close again has no effect.
func (q *SequencerOf[I]) Close(ctx context.Context) error {
	needContext(ctx) // the Keeper may not need it
	q.mu.Lock()
	q.closed, q.wanted = true, false
	q.mu.Unlock()
	return q.keeper.Close(ctx)
}

// isClosed reports whether Close was called.
func (q *SequencerOf[I]) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// want requests a window, without waiting.
func (q *SequencerOf[I]) want() { _ = q.keeper.Demand(ended) }

// ended is a context with which a call informs the Keeper, and does not wait.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Config returns the configuration that all members of the sequencer share, as
// it was last read.
func (q *SequencerOf[I]) Config() grant.Config {
	if info, ok := q.keeper.Info(); ok {
		return info.Config
	}
	return q.config
}

// Status returns the current status of the sequencer in this process. Its Err is
// what prevents progress, such as firn.ErrClosed or grant.ErrDestroyed; if Idle, why
// the last node ID was not given back.
func (q *SequencerOf[I]) Status() grant.Status {
	status, _ := q.keeper.Status()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return grant.Status{Err: firn.ErrClosed}
	case status.Phase == grant.Idle:
		return status
	case status.Err == nil:
		status.Err = q.unusable
	}
	if status.Phase == grant.Joining || errors.Is(status.Err, grant.ErrDestroyed) {
		return grant.Status{Phase: status.Phase, Err: status.Err}
	}
	return status
}

// Stats returns statistics since the sequencer was opened. Its counts never
// fall.
func (q *SequencerOf[I]) Stats() Stats {
	q.mu.Lock()
	s := Stats{Stats: q.before}
	current := q.current.Load() // under the lock, so that its counts are not yet in before
	q.mu.Unlock()
	if current != nil {
		now := current.Stats() // calls the clock, which may panic
		s.Stats = sum(s.Stats, now)
		s.Lead = now.Lead
	}
	s.Keeper = q.keeper.Stats()
	return s
}
