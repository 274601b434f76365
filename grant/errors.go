package grant

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firnid/firn/internal/granterr"
)

// Errors of sequencers and their node IDs. Some are matched by types that carry
// data to act on, and some by errors of package client, if a server has them.
var (
	// ErrNotFound is returned for a sequencer that was never created.
	ErrNotFound = granterr.ErrNotFound

	// ErrDestroyed is returned for a sequencer that was destroyed or is being
	// destroyed. Creating it again with the same layout makes it usable again.
	ErrDestroyed = granterr.ErrDestroyed

	// ErrDetached is returned for a sequencer that was detached: no process may
	// hold a node ID of it in this store until it is attached again.
	ErrDetached = granterr.ErrDetached

	// ErrMoved is returned for a sequencer that another store has now; see
	// Move. It matches ErrDetached.
	ErrMoved = granterr.ErrMoved

	// ErrEarly is returned by SetNodes if it is too early to hand node IDs over
	// to another store or generator, and too long to wait for that.
	ErrEarly = errors.New("grant: too early to hand node IDs over")

	// ErrMismatch is returned if a sequencer has another configuration than the
	// caller wants. The text has both values, and what to do.
	ErrMismatch = errors.New("grant: the sequencer has another configuration")

	// ErrNodesExhausted means that the member may take no node ID now. Every
	// NodesExhaustedError matches it.
	ErrNodesExhausted = granterr.ErrNodesExhausted

	// ErrClockBehind means that the clock is so far behind those of other
	// members that its IDs would be out of order. The error of a Fence whose
	// clock is far behind the records matches it too.
	ErrClockBehind = granterr.ErrClockBehind

	// ErrClockAhead means that the clock is so far ahead that a node ID claimed
	// by it would be blocked for others; a member that already holds one keeps
	// it. The error of a Fence whose clock is far ahead of the records matches
	// it too.
	ErrClockAhead = granterr.ErrClockAhead

	// ErrComparingClocks means that the clock looks far ahead, and is being
	// compared with those of members that renew. The error may disappear by
	// itself, within half a window. It matches ErrClockAhead.
	ErrComparingClocks = fmt.Errorf("%w: comparing it with those of other members", ErrClockAhead)

	// ErrStoreWentBack is returned after the store has gone back to an earlier
	// state, such as a backup. No node ID is acquired or renewed until an
	// operator fences the sequencer (firn node fence).
	ErrStoreWentBack = granterr.ErrStoreWentBack

	// ErrUnsure is returned by Fence if it does not know how long the windows
	// of the sequencer were, and so how high the floor must be.
	ErrUnsure = errors.New("grant: the longest window is unknown")

	// ErrNewerVersion is returned for a record that a newer version of Firn
	// wrote in a form unknown to this one. The record was not changed.
	ErrNewerVersion = errors.New("grant: the record has a newer version than this program knows; upgrade it")

	// ErrDamaged is returned for a record that cannot be read. The record was
	// not changed. SetNodes returns it too if it has changed the range, but the
	// record of a node ID outside is damaged.
	ErrDamaged = errors.New("grant: the record is damaged")
)

// mismatchError returns the error for a field that a sequencer has and a caller
// wants with another value.
func mismatchError(name, field, have, want string) error {
	todo := "that cannot change; use the existing sequencer, or choose another name, whose IDs may collide with " +
		"those of this one"
	switch {
	case field == "nodes" || field == "window":
		todo = fmt.Sprintf("change it with firn sequencer %s %s %s", field, name, want)
	case field == "floor":
		todo = "it may have made IDs before that time, which another generator may have made too: choose another name, " +
			"or destroy it and create it again if it made none"
	case field == "prefix" && have == noPrefix:
		todo = "destroy the sequencer and create it again with that prefix: its IDs continue"
	}
	return kindErrorf(ErrMismatch, "sequencer %s has %s %s, not %s: %s", name, field, have, want, todo)
}

// A NodesExhaustedError reports that the member may take no node ID now. It
// matches ErrNodesExhausted.
type NodesExhaustedError struct {
	// Free is when the first known window ends unless it is renewed, or when
	// the first node ID may be used if Ahead is set. It is zero if unknown.
	Free time.Time

	// Ahead means that no node ID is held, but none may be used before Free:
	// because of a floor if Fenced is set, and otherwise because this machine's
	// clock is behind the marks.
	Ahead bool

	// Fenced means that the floor of the sequencer, which a fence or the
	// creation set, is Free or later. Ahead is set too.
	Fenced bool

	sequencer  string
	nodes      NodeRange // that the member may take
	atCreation bool      // the floor is that of the creation
}

func (e *NodesExhaustedError) Error() string {
	what := fmt.Sprintf("none of the node IDs %d..%d of sequencer %s is free", e.nodes.Lo, e.nodes.Hi, e.sequencer)
	if e.nodes.Lo == e.nodes.Hi {
		what = fmt.Sprintf("node ID %d of sequencer %s is held by another", e.nodes.Lo, e.sequencer)
	}
	switch {
	case e.atCreation:
		return fmt.Sprintf("grant: sequencer %s begins at %s", e.sequencer, timeText(e.Free))
	case e.Fenced:
		return fmt.Sprintf("grant: sequencer %s was fenced, continuing at %s", e.sequencer, timeText(e.Free))
	case e.Ahead:
		return fmt.Sprintf("grant: no node ID %d..%d of sequencer %s may be used before %s"+
			": this machine's clock is behind the marks",
			e.nodes.Lo, e.nodes.Hi, e.sequencer, timeText(e.Free))
	case e.Free.IsZero():
		return "grant: " + what
	}
	return fmt.Sprintf("grant: %s; the first window ends at %s unless it is renewed", what, timeText(e.Free))
}

// Is reports whether target is ErrNodesExhausted.
func (e *NodesExhaustedError) Is(target error) bool { return target == ErrNodesExhausted }

// A detailedError has a text of its own, and matches its kind.
type detailedError struct {
	kind error
	text string
}

func (e *detailedError) Error() string { return e.text }
func (e *detailedError) Unwrap() error { return e.kind }

func kindErrorf(kind error, format string, args ...any) error {
	return &detailedError{kind, fmt.Sprintf("grant: "+format, args...)}
}

// movedError names the store that has a sequencer now.
func movedError(name, url string) error {
	return kindErrorf(ErrMoved, "sequencer %s was moved to %s: use that store", name, url)
}

// beingDestroyedError says how to finish a Destroy that was interrupted.
func beingDestroyedError(name string) error {
	return fmt.Errorf("%w: %s is being destroyed; finish that first (firn sequencer destroy %s)",
		ErrDestroyed, name, name)
}

// finalErrors lists the errors of a member for which waiting does not help.
var finalErrors = [...]error{
	ErrNotFound, ErrDestroyed, ErrDetached, ErrMismatch, ErrClockBehind, ErrClockAhead,
	ErrStoreWentBack, ErrDamaged, ErrNewerVersion, errBadName,
}

// IsFinal reports whether the Err of a Status lasts until the sequencer, the
// store or a clock is changed, so that waiting does not help. An unreachable
// store is not final, and neither is a sequencer whose node IDs are all held.
func IsFinal(err error) bool {
	if errors.Is(err, ErrComparingClocks) {
		return false
	}
	return slices.ContainsFunc(finalErrors[:], func(f error) bool { return errors.Is(err, f) })
}
