package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/auth"
)

// ErrTooManyNames is what a Backend's error matches that has no room for
// another name.
var ErrTooManyNames = errors.New("too many sequencers")

// A Fault is why a request was not done, as every protocol tells it.
type Fault struct {
	Kind   Kind
	Detail string        // what is wrong, and what would be right
	Retry  time.Duration // when it may be otherwise; 0 where that is not known
	Cause  error         // what to log, where it is the server that has failed
}

// A cause is an error, and the kind that it is.
type cause struct {
	err  error
	kind Kind
}

// causes is the one table from the errors of a Backend and its sources to
// kinds. The first that matches is what an error is: the state of the store and
// of the sequencer comes before the deadline that may have ended the wait for
// it.
var causes = [...]cause{
	{grant.ErrNodesExhausted, NodesExhausted},
	{grant.ErrRolledBack, StoreRolledBack},
	{grant.ErrDetached, Detached},
	{grant.ErrDestroyed, Destroyed},
	{grant.ErrClockBehind, ClockWrong},
	{grant.ErrClockAhead, ClockAhead},
	{grant.ErrDamaged, BadRecord},
	{grant.ErrNewerVersion, BadRecord},
	{grant.ErrNotFound, BadRecord},
	{sequencer.ErrUnavailable, StoreUnavailable},
	{grant.ErrMismatch, Recreated}, // the Cluster has forgotten it, and opens it as it is now
	{sequencer.ErrClosed, Draining},
	{firn.ErrBatchTooLarge, BatchTooLarge},
	{firn.ErrExhausted, Busy},
	{firn.ErrGrantOver, NoGrant},
	{firn.ErrSealed, NoGrant},
	{firn.ErrTimeOver, TimeOver},
	{ErrTooManyNames, TooManyNames},
	{ErrNoSequencer, NoSequencer},
	{ErrTemplate, BadConfig},
}

// kindOf is the kind of an error; Internal if it is not known.
func kindOf(err error) Kind {
	kind, ok := knownKind(err)
	switch {
	case ok:
		return kind
	case errors.Is(err, context.DeadlineExceeded):
		return Busy
	}
	return Internal
}

// knownKind is the kind of an error that says what it is, which one of a store
// that does not answer need not.
func knownKind(err error) (Kind, bool) {
	var (
		none  *grant.ExhaustedError
		peer  *PeerError
		clock *firn.ClockError
		made  *CreateError
		pace  *auth.PaceError
	)
	switch {
	case errors.As(err, &pace):
		return Busy, true
	case errors.As(err, &made) && errors.Is(err, auth.ErrUnauthorized):
		return Unauthorized, true
	case errors.As(err, &made):
		return Forbidden, true
	case errors.Is(err, context.Canceled):
		return Cancelled, true
	case errors.As(err, &none) && none.Ahead:
		return NotYet, true
	case errors.As(err, &peer) && peer.Kind == NotYet:
		return NotYet, true
	}
	for _, c := range causes {
		if errors.Is(err, c.err) {
			return c.kind, true
		}
	}
	return ClockWrong, errors.As(err, &clock)
}

// A PeerError is what another server has answered with. errors.Is sees in it
// what it is at that server, so that clients read it as if it were this one's.
// What is wrong between the two servers, as with tokens, is nothing that
// clients can change: to them it is Internal.
type PeerError struct {
	Kind   Kind
	Detail string        // what is wrong, and what would be right; it names no server
	Retry  time.Duration // when it may be otherwise; 0 if that is not known
}

func (e *PeerError) Error() string { return "another server that was asked: " + e.Detail }

// Is reports whether the other server had an error of this kind. That it stops
// is not so of this one.
func (e *PeerError) Is(target error) bool {
	for _, c := range causes {
		if c.err == target {
			return e.Kind != Draining && c.kind == e.Kind || c.kind == NodesExhausted && e.Kind == NotYet
		}
	}
	return false
}

// FaultOf tells what an error of a Backend or its sources is. Limit is what the
// request was given, and late whether it has passed.
func FaultOf(err error, limit time.Duration, late bool) Fault {
	f := Fault{Kind: kindOf(err), Detail: Detail(err)}
	f.Retry = kinds[f.Kind].retry
	if kinds[f.Kind].logged {
		f.Cause = err
	}
	var (
		wait  *firn.WaitError
		clock *firn.ClockError
		none  *grant.ExhaustedError
		ahead *grant.ClockAheadError
		peer  *PeerError
	)
	var pace *auth.PaceError
	switch {
	case errors.As(err, &pace):
		f.Retry = pace.Wait
	case errors.As(err, &peer) && f.Kind != Internal:
		f.Retry = peer.Retry
	case f.Kind == NotYet && errors.As(err, &none):
		f.Retry = max(time.Until(none.Free), time.Second)
	case f.Kind == ClockAhead && errors.As(err, &ahead) && ahead.Comparing:
		f.Retry = time.Second
	case f.Kind == Busy && errors.As(err, &wait):
		f.Detail, f.Retry = Detail(wait), wait.Wait
	case f.Kind == ClockWrong && errors.As(err, &clock):
		f.Retry, f.Cause = clock.Wait, nil // it ends by itself
	}
	switch f.Kind {
	case StoreUnavailable:
		// The log has what the store said; that may name hosts.
		f.Detail = "node IDs are kept in a store that could not be reached or read; the server's log says more"
		switch silent := (*silentError)(nil); {
		case errors.As(err, &silent):
			f.Detail = fmt.Sprintf("node IDs are kept in a store that has not answered for %v; the server keeps trying, and its log says more", silent.silent.Round(time.Second))
		case errors.Is(err, context.DeadlineExceeded):
			f.Detail = "node IDs are kept in a store that did not answer in time; the server's log says more"
		}
	case BatchTooLarge:
		f.Detail += fmt.Sprintf(": it must be done in %v; ask for fewer IDs at a time", limit)
	case Internal:
		f.Detail = "the server's log says what happened"
	}
	if late && f.Retry > 0 {
		f.Detail = fmt.Sprintf("the limit of %v for a request has passed: %s", limit, f.Detail)
	}
	if f.Retry > maxRetry {
		f.Retry = 0
	}
	return f
}

// Level is that of a line about the Cause. A store that does not answer fails
// every request: there who watches the store says so, and not each of them.
func (f Fault) Level() slog.Level {
	if f.Kind == StoreUnavailable {
		return slog.LevelDebug
	}
	return slog.LevelError
}

// maxRetry is the longest Retry-After. A wait beyond it does not end by itself:
// the clock is years before the epoch, for instance.
const maxRetry = time.Hour

// Detail is an error as a detail, which needs no prefix of a package.
func Detail(err error) string {
	text := err.Error()
	for _, prefix := range [...]string{"firn: ", "grant: ", "sequencer: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}
