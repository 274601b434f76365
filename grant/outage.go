package grant

import (
	"errors"
	"log/slog"
	"time"
)

// An outage logs that a member cannot renew: once when renewals begin to fail,
// with the time left, once when the window ends, and once when the member has
// a window again. It takes no request of a user's for that: the Keeper's timer
// looks when the window ends.
//
// A window that nobody used lapses on purpose. That is not an outage, whatever
// the store does.
type outage struct {
	log   *slog.Logger
	since time.Time // of the first failure; the zero time if renewals succeed
	ended bool      // the window has ended since
	told  uint16    // the causes that were logged since, a bit each
}

// check looks at the machine after a step. It returns how long the window
// lasts if it ends unless a renewal succeeds, and else 0.
func (o *outage) check(m *Machine) (left time.Duration) {
	s := m.status
	switch s.Phase {
	case Idle, Leaving:
		*o = outage{log: o.log}
		return 0
	case Joining:
		if s.Err != nil && o.isNew(s.Err) {
			o.log.Warn("no node ID acquired", "error", s.Err)
		}
		return 0
	}
	until := timeOf(s.Until)
	left = time.Duration(s.Until-max(m.wall, m.used)) * time.Millisecond
	switch {
	case !m.overdue():
		if s.Err == nil && s.Phase == Holding {
			if !o.since.IsZero() {
				o.log.Info("window renewed again", "node", s.Node, "until", until, "after", time.Since(o.since).Round(time.Millisecond).String())
			}
			*o = outage{log: o.log}
		}
		return 0
	case s.Err == nil:
		return 0 // the renewal is under way
	case o.since.IsZero():
		o.since = time.Now()
	}
	switch isNew := o.isNew(s.Err); {
	case left > 0 && isNew:
		o.log.Warn("window not renewed, serving until it ends", "node", s.Node, "until", until, "left", left.String(), "error", s.Err)
	case left <= 0 && (isNew || !o.ended):
		o.ended = true
		o.log.Error("window ended, no IDs until it is renewed", "node", s.Node, "until", until, "error", s.Err)
	}
	return max(left, 0)
}

// isNew reports whether an error has another cause than those logged since
// renewals began to fail. The text of an error does not count: it may have a
// port in it that is another one each time.
func (o *outage) isNew(err error) bool {
	causes := [...]error{
		ErrNotFound, ErrDestroyed, ErrDetached, ErrMismatch, ErrNodesExhausted,
		ErrClockBehind, ErrClockAhead, ErrRolledBack, ErrDamaged, ErrNewerVersion,
	}
	cause := 0
	for cause < len(causes) && !errors.Is(err, causes[cause]) {
		cause++ // to the last one, which is the store's
	}
	if ahead := (*ClockAheadError)(nil); errors.As(err, &ahead) && ahead.Comparing {
		cause = len(causes) + 1 // more is known later
	}
	bit := uint16(1) << cause
	isNew := o.told&bit == 0
	o.told |= bit
	return isNew
}
