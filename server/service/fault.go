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

// FaultOf is the one table from the errors of a Backend and its sources to
// faults. Limit is what the request was given, and late whether it has passed.
func FaultOf(err error, limit time.Duration, late bool) Fault {
	f := Fault{Kind: Internal, Detail: Detail(err)}
	var (
		wait  *firn.WaitError
		clock *firn.ClockError
		none  *grant.ExhaustedError
	)
	switch {
	case errors.Is(err, context.Canceled):
		f.Kind = Cancelled

	// Before the deadline that may have ended the wait for it. A node ID that another
	// server holds may be given back at any moment; one that was fenced is free when its
	// time has come, and not before.
	case errors.As(err, &none) && none.Ahead:
		f.Kind, f.Retry = NotYet, max(time.Until(none.Free), time.Second)
	case errors.Is(err, grant.ErrNodesExhausted):
		f.Kind, f.Retry = NodesExhausted, time.Second
	case errors.Is(err, grant.ErrRolledBack):
		f.Kind, f.Cause = StoreRolledBack, err
	case errors.Is(err, grant.ErrDetached):
		f.Kind = Detached
	case errors.Is(err, grant.ErrDestroyed):
		f.Kind = Destroyed
	case errors.Is(err, grant.ErrClockBehind):
		f.Kind, f.Cause = ClockWrong, err
	case errors.Is(err, grant.ErrClockAhead):
		f.Kind, f.Cause = ClockAhead, err
		if ahead := (*grant.ClockAheadError)(nil); errors.As(err, &ahead) && ahead.Comparing {
			f.Retry = time.Second
		}
	case errors.Is(err, grant.ErrDamaged), errors.Is(err, grant.ErrNewerVersion), errors.Is(err, grant.ErrNotFound):
		f.Kind, f.Cause = BadRecord, err
	case errors.Is(err, sequencer.ErrUnavailable):
		// The log has what the store said; that may name hosts.
		f.Kind, f.Retry, f.Cause = StoreUnavailable, time.Second, err
		f.Detail = "node numbers are kept in a store that could not be reached or read; the server's log says more"
		switch silent := (*silentError)(nil); {
		case errors.As(err, &silent):
			f.Detail = fmt.Sprintf("node numbers are kept in a store that has not answered for %v; the server keeps trying, and its log says more", silent.silent.Round(time.Second))
		case errors.Is(err, context.DeadlineExceeded):
			f.Detail = "node numbers are kept in a store that did not answer in time; the server's log says more"
		}
	case errors.Is(err, grant.ErrMismatch):
		// The backend has forgotten it, and opens it as it is now.
		f.Kind, f.Retry = Recreated, time.Second
	case errors.Is(err, sequencer.ErrClosed):
		f.Kind = Draining

	case errors.Is(err, firn.ErrBatchTooLarge):
		f.Kind = BatchTooLarge
		f.Detail += fmt.Sprintf(": it must be done in %v; ask for fewer IDs at a time", limit)

	// Every ID that was waited for is there a moment later, so the least that
	// Retry-After can say is right where nothing better is known.
	case errors.As(err, &wait):
		f.Kind, f.Retry = Busy, wait.Wait
	case errors.As(err, &clock):
		f.Kind, f.Retry = ClockWrong, clock.Wait
	case errors.Is(err, firn.ErrExhausted), errors.Is(err, context.DeadlineExceeded):
		f.Kind, f.Retry = Busy, time.Second
	case errors.Is(err, firn.ErrGrantOver), errors.Is(err, firn.ErrSealed):
		f.Kind, f.Retry = NoGrant, time.Second

	case errors.Is(err, firn.ErrTimeOver):
		f.Kind = TimeOver
	case errors.Is(err, ErrTooManyNames):
		f.Kind = TooManyNames
	case errors.Is(err, ErrNoSequencer):
		f.Kind = NoSequencer
	case errors.Is(err, ErrTemplate):
		f.Kind, f.Cause = BadConfig, err
	default:
		f.Detail, f.Cause = "the server's log says what happened", err
	}
	if late && f.Retry > 0 {
		f.Detail = fmt.Sprintf("the limit of %v for a request has passed: %s", limit, f.Detail)
	}
	if f.Retry > maxRetry {
		f.Retry = 0
	}
	return f
}

// Level is that of a line about the Cause. A store that does not answer fails every request:
// there who watches the store says so, and not each of them.
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
