package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
)

// An entry is a name in use: its sequencer is being opened, is open, or is
// being closed. If the sequencer was closed to make room for another one, calls
// that have it open it again. If it was purged and created again with another
// layout, they get the error, and the next call for the name opens it with the
// new layout.
type entry struct {
	backend *StoreBackend
	name    string

	// Guarded by the StoreBackend's mu.
	phase    phase
	changed  chan struct{} // closed when opening or closing has ended
	err      error         // why it could not be opened
	panicked any           // the panic of a user's clock or template

	// Set when it is open.
	since     time.Time
	sequencer *Sequencer // which waits by the entry
	queue     *queue     // of calls for IDs
	openSequencer
}

// An openSequencer is a sequencer.SequencerOf.
type openSequencer interface {
	Config() grant.Config
	Join(context.Context) error
	Close(context.Context) error
	Abandon()
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

// openEntry returns the entry of a name if its sequencer is open, or nil.
func (b *StoreBackend) openEntry(name string) *entry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if e := b.byName[name]; e != nil && e.phase == phaseOpen {
		return e
	}
	return nil
}

// opened returns the open sequencers by name.
func (b *StoreBackend) opened() map[string]*entry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	all := make(map[string]*entry, len(b.byName))
	for name, e := range b.byName {
		if e.phase == phaseOpen {
			all[name] = e
		}
	}
	return all
}

// waitInLine waits after a refusal, for a silent store only as long as that
// makes sense, and asks other servers if this one has lost its node ID.
func (e *entry) waitInLine(ctx context.Context, n int, refusal error) (b Batch, err error) {
	err = e.retireIfRecreated(refusal)
	if isWait(refusal) {
		use := storeUse{writes: true, onlyIf: e.lapsed}
		err = e.backend.silence.whileAnswering(ctx, use, func(ctx context.Context) error {
			b, err = e.queue.waitInLine(ctx, n, refusal)
			return e.retireIfRecreated(err)
		})
	}
	if errors.Is(err, firn.ErrClosed) {
		return e.reopened(ctx, n, err)
	}
	if peers := e.backend.config.Peers; peers != nil && errors.Is(err, grant.ErrNodesExhausted) && !Forwarded(ctx) {
		return peers.Take(ctx, e.name, e.sequencer.Layout, n, err)
	}
	return b, err
}

// reopened takes IDs from the sequencer that replaced that of e, if there is
// one. closed is the error of e.
func (e *entry) reopened(ctx context.Context, n int, closed error) (b Batch, err error) {
	q, err := e.backend.Sequencer(ctx, e.name, nil)
	switch {
	case err != nil:
		return b, err
	case q == e.sequencer:
		return b, closed
	case !q.Layout.SameIDs(e.sequencer.Layout):
		return b, fmt.Errorf("%w: sequencer %s has layout %s now, not %s", grant.ErrMismatch, e.name, q.Layout,
			e.sequencer.Layout)
	}
	return q.Take(ctx, n)
}

// retireIfRecreated returns the error of a call, and retires a sequencer that
// was created again.
func (e *entry) retireIfRecreated(err error) error {
	if errors.Is(err, grant.ErrMismatch) {
		e.backend.retire(e)
	}
	return err
}

// lapsed reports whether no window is open.
func (e *entry) lapsed() bool { return !e.Status().Holds(time.Now()) }

// rejoinTimeout is how long rejoin waits. After that, callers who want an ID
// get the error.
const rejoinTimeout = 2 * time.Second

// rejoin makes an open sequencer without a node ID read its configuration
// again, after it was created again or attached. Otherwise the next call would
// be answered from an outdated state. Detach and Destroy need nothing alike:
// the store notifies their Keepers (grant.Observe).
func (b *StoreBackend) rejoin(ctx context.Context, name string) {
	e := b.openEntry(name)
	if e == nil || !e.lapsed() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rejoinTimeout)
	defer cancel()
	if err := e.Join(ctx); errors.Is(err, grant.ErrMismatch) {
		b.retire(e) // it has another layout now
	}
}
