package sequencer

import (
	"time"

	"github.com/firnid/firn"
)

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

func (h holder[I]) Seal() { h.member.seal() }

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
