package sequencer

import (
	"time"

	"github.com/firnid/firn"
)

// A holder is a sequencer as seen by its Keeper. A sequencer does not have
// these methods itself, because a caller could then use a node ID without a
// grant.
type holder[I firn.AnyID] struct{ sequencer *SequencerOf[I] }

// Begin starts or switches the generator under a grant.
func (h holder[I]) Begin(g firn.Grant) error {
	err := h.useGrant(g)
	if err != nil {
		h.Stop() // nothing of the previous grant is used either
	}
	h.sequencer.mu.Lock()
	defer h.sequencer.mu.Unlock()
	h.sequencer.unusable = err
	return err
}

// useGrant makes a generator, which lives until it is sealed, or switches the
// existing one.
func (h holder[I]) useGrant(g firn.Grant) error {
	q := h.sequencer
	if current := q.current.Load(); current != nil {
		return current.Switch(g)
	}
	q.mu.Lock()
	until := q.sealedUntil
	q.mu.Unlock()
	if g.From.Before(until) {
		g.From = until // the order of IDs within the process
	}
	next, err := q.newGenerator(q.config.Layout, g, &q.options)
	if err != nil {
		return err
	}
	q.current.Store(next)
	return nil
}

// Extend moves the end of the window to a later time.
func (h holder[I]) Extend(until time.Time) error {
	if current := h.sequencer.current.Load(); current != nil {
		return current.Extend(until)
	}
	return nil
}

// Stop ends the use of the current grant.
func (h holder[I]) Stop() {
	q := h.sequencer
	current := q.current.Load()
	if current == nil {
		return
	}
	until := current.Seal()
	made := current.Stats() // without the lock, because it calls the clock, which may panic
	q.mu.Lock()
	defer q.mu.Unlock()
	if until.After(q.sealedUntil) {
		q.sealedUntil = until
	}
	q.sealedStats = sumStats(q.sealedStats, made)
	q.current.Store(nil)
}

// Used returns the exclusive end of the times used.
func (h holder[I]) Used() time.Time {
	q := h.sequencer
	q.mu.Lock()
	used := q.sealedUntil
	q.mu.Unlock()
	if current := q.current.Load(); current != nil {
		if now := current.Used(); now.After(used) {
			used = now
		}
	}
	return used
}
