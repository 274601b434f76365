package respapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/httpapi"
)

// The first word of an error. Clients act on some that Redis has, so these are
// chosen by what clients do:
//
//   - ERR: the same command can never be answered here, or somebody has to change
//     something first. Clients hand it to their callers.
//   - TRYAGAIN: it can be answered a moment later. go-redis tries again by itself,
//     a few times; no ID was taken, so that does no harm. Other clients hand it to
//     their callers, except in cluster mode.
//   - UNAVAILABLE: the store, the clock or the server itself must come back first.
//     Redis has no such word, so that no client acts on it.
//   - NOAUTH, WRONGPASS, NOPERM, NOPROTO: as in Redis.
//
// Not used are LOADING, BUSY, MASTERDOWN, CLUSTERDOWN, MOVED and READONLY: with them
// clients close the connection, look for another server or hide the text.
const (
	codeErr         = "ERR"
	codeTryAgain    = "TRYAGAIN"
	codeUnavailable = "UNAVAILABLE"
)

// A failure is the answer to a command that could not be done.
type failure struct {
	code  string
	text  string
	cause error // what to log, where it is the server that has failed
}

// failureOf is the one table from the errors of a Backend and its sources to
// failures. Texts begin with the kind of problem that HTTP has for the error; see
// package httpapi. Late is whether the limit of the command has passed.
func failureOf(err error, limit time.Duration, late bool) failure {
	f := failure{code: codeErr}
	kind, detail := "internal", detailOf(err)
	var (
		wait  *firn.WaitError
		clock *firn.ClockError
	)
	switch {
	case errors.Is(err, context.Canceled):
		f.code, kind = codeUnavailable, "cancelled"
	case errors.Is(err, grant.ErrNodesExhausted):
		f.code, kind = codeTryAgain, "nodes-exhausted"
	case errors.Is(err, grant.ErrRolledBack):
		f.code, kind, f.cause = codeUnavailable, "store-rolled-back", err
	case errors.Is(err, grant.ErrDetached):
		kind = "detached"
	case errors.Is(err, grant.ErrDestroyed):
		kind = "destroyed"
	case errors.Is(err, grant.ErrClockBehind):
		f.code, kind, f.cause = codeUnavailable, "clock", err
	case errors.Is(err, grant.ErrDamaged), errors.Is(err, grant.ErrNewerVersion), errors.Is(err, grant.ErrNotFound):
		kind, f.cause = "bad-record", err
	case errors.Is(err, sequencer.ErrUnavailable):
		// The log has what the store said; that may name hosts.
		f.code, kind, f.cause = codeUnavailable, "store-unavailable", err
		detail = "node numbers are kept in a store that did not answer in time; the server's log says more"
	case errors.Is(err, grant.ErrMismatch):
		f.code, kind = codeTryAgain, "recreated"
	case errors.Is(err, sequencer.ErrClosed):
		f.code, kind = codeUnavailable, "draining"
	case errors.Is(err, firn.ErrBatchTooLarge):
		kind = "batch-too-large"
		detail += fmt.Sprintf(": it must be done in %v; ask for fewer IDs at a time", limit)
	case errors.As(err, &wait):
		f.code, kind = codeTryAgain, "busy"
	case errors.As(err, &clock):
		f.code, kind = codeUnavailable, "clock"
	case errors.Is(err, firn.ErrExhausted), errors.Is(err, context.DeadlineExceeded):
		f.code, kind = codeTryAgain, "busy"
	case errors.Is(err, firn.ErrGrantOver), errors.Is(err, firn.ErrSealed):
		f.code, kind = codeTryAgain, "no-grant"
	case errors.Is(err, firn.ErrTimeOver):
		kind = "time-over"
	case errors.Is(err, httpapi.ErrNoSequencer):
		kind = "no-sequencer"
	case errors.Is(err, httpapi.ErrTemplate):
		kind, f.cause = "bad-config", err
	case errors.Is(err, httpapi.ErrTooManyNames):
		kind = "too-many-names"
	default:
		detail, f.cause = "the server's log says what happened", err
	}
	if late && f.code != codeErr {
		detail = fmt.Sprintf("the limit of %v for a command has passed: %s", limit, detail)
	}
	f.text = kind + ": " + detail
	return f
}

// detailOf is an error as a detail, which needs no prefix of a package.
func detailOf(err error) string {
	text := err.Error()
	for _, prefix := range [...]string{"firn: ", "grant: ", "sequencer: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// A requestError says what is wrong with a command. Nothing was taken for it.
type requestError string

func (e requestError) Error() string { return string(e) }

func requestErrorf(format string, a ...any) error { return requestError(fmt.Sprintf(format, a...)) }
