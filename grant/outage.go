package grant

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"
)

// An outage logs that a member cannot renew its window: once when renewals
// begin to fail, with the time left, once when the window ends, and once when
// the member has a window again. It makes no requests: the Keeper's timer shows
// when the window ends.
//
// A window that was not used lapses on purpose. That is not an outage, whatever
// the store does.
type outage struct {
	log     *slog.Logger
	since   time.Time // time of the first failure; the zero time if renewals succeed
	ended   bool      // the window has ended since
	expired bool      // it has, and no operator wanted that
	logged  []error   // the causes that were logged since
	tries   int       // steps that found no node ID
}

// update examines the machine after a step. It returns how long the window
// lasts if it will end without a successful renewal, and 0 otherwise.
func (o *outage) update(m *machine) (left time.Duration) {
	s := m.status
	switch s.Phase {
	case Idle, Leaving:
		*o = outage{log: o.log}
		return 0
	case Joining:
		if s.Err == nil {
			return 0
		}
		// The caller of Open gets the first error, and may not wait for
		// another.
		if o.tries++; o.tries > 1 && o.isNew(s.Err) {
			o.log.Warn("no node ID acquired", "error", s.Err)
		}
		return 0
	}
	left = s.Until.Sub(timeOf(max(m.wall, m.used)))
	switch {
	case !m.needsWindow():
		if s.Err == nil && s.Phase == Holding {
			if !o.since.IsZero() {
				o.log.Info("window renewed again", "node", s.Node, "until", s.Until,
					"after", time.Since(o.since).Round(time.Millisecond).String())
			}
			*o = outage{log: o.log}
		}
		return 0
	case s.Err == nil:
		return 0 // the renewal is in progress
	case o.since.IsZero():
		o.since = time.Now()
	}
	switch isNew := o.isNew(s.Err); {
	case left > 0 && isNew:
		o.log.Warn("window not renewed, serving until it ends",
			"node", s.Node, "until", s.Until, "left", left.String(), "error", s.Err)
	case left <= 0 && (isNew || !o.ended):
		level := slog.LevelError
		if intended(s.Err) {
			level = slog.LevelWarn
		} else if !o.ended {
			o.expired = true
		}
		o.ended = true
		o.log.Log(context.Background(), level, "window ended, no IDs until it is renewed",
			"node", s.Node, "until", s.Until, "error", s.Err)
	}
	return max(left, 0)
}

// intended reports whether an error of a member shows what an operator did: a
// fence, a detach, a move, a range without the member's node IDs, or a sequencer
// that was destroyed or created again. A store that went back comes first: what
// was read since may be what it went back to.
func intended(err error) bool {
	if errors.Is(err, ErrStoreWentBack) {
		return false
	}
	e, ok := errors.AsType[*NodesExhaustedError](err)
	return ok && e.Fenced || slices.ContainsFunc([]error{ErrDetached, ErrDestroyed, ErrMismatch, errOtherNodes},
		func(target error) bool { return errors.Is(err, target) })
}

// isNew reports whether an error has a different cause than those logged since
// renewals began to fail. It ignores the text of an error, which may contain a
// different port each time.
func (o *outage) isNew(err error) bool {
	cause := errStoreFails
	// More is known after a comparison.
	for _, c := range append([]error{ErrComparingClocks, ErrNodesExhausted}, finalErrors[:]...) {
		if errors.Is(err, c) {
			cause = c
			break
		}
	}
	isNew := !slices.Contains(o.logged, cause)
	if isNew {
		o.logged = append(o.logged, cause)
	}
	return isNew
}

// errStoreFails stands for all errors of a store.
var errStoreFails = errors.New("grant: the store fails")
