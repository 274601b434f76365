package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// Errors that those of a Backend match.
var (
	ErrTooManyNames = errors.New("too many sequencers")          // it has no room for another name
	ErrNoSequencer  = errors.New("no such sequencer")            // it must be created before it is used
	ErrTemplate     = errors.New("invalid server configuration") // of a name
)

func tooManyNames(limit int, name string) error {
	return fmt.Errorf("%w: this server already keeps its limit of %d names, and %s is not one of them",
		ErrTooManyNames, limit, name)
}

// A Problem is why a request failed, as every protocol reports it.
type Problem struct {
	Kind   Kind
	Detail string        // what is wrong, and what to do
	Retry  time.Duration // when to retry; 0 if unknown
	Cause  error         // what to log if the server has failed
	err    error
}

// Problemf returns a Problem with a formatted detail, and the Retry of its
// kind.
func Problemf(k Kind, format string, a ...any) *Problem {
	return &Problem{Kind: k, Detail: fmt.Sprintf(format, a...), Retry: kinds[k].retry}
}

func (p *Problem) Error() string { return p.Detail }

// Unwrap returns the error that the Problem describes; nil for one of the
// request.
func (p *Problem) Unwrap() error { return p.err }

// An errorKind maps an error to its Kind.
type errorKind struct {
	err  error
	kind Kind
}

// errorKinds is the only table from errors of a Backend and its sources to
// kinds. The first match decides: the state of the store and of the sequencer
// comes before the deadline that may have ended the wait for it.
var errorKinds = [...]errorKind{
	{grant.ErrNodesExhausted, NodesExhausted},
	{grant.ErrStoreWentBack, StoreRolledBack},
	{grant.ErrMoved, Moved}, // matches ErrDetached too
	{grant.ErrDetached, Detached},
	{grant.ErrDestroyed, Destroyed},
	{grant.ErrClockBehind, ClockWrong},
	{grant.ErrClockAhead, ClockAhead},
	{grant.ErrDamaged, BadRecord},
	{grant.ErrNewerVersion, BadRecord},
	{grant.ErrNotFound, BadRecord},
	{firn.ErrUnavailable, StoreUnavailable},
	{grant.ErrMismatch, Recreated}, // the StoreBackend opens it again with its new layout
	{firn.ErrClosed, Draining},
	{firn.ErrBatchTooLarge, BatchTooLarge},
	{firn.ErrExhausted, Busy},
	{firn.ErrGrantOver, NoGrant},
	{firn.ErrSealed, NoGrant},
	{firn.ErrTimeOver, TimeOver},
	{ErrTooManyNames, TooManyNames},
	{errNoPrefix, BadParameter},
	{ErrNoSequencer, NoSequencer},
	{ErrTemplate, BadConfig},
}

// kindOf returns the Kind of an error; Internal if it is unknown.
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

// knownKind returns the Kind of an error that identifies itself. An error of a
// store that does not answer may not.
func knownKind(err error) (Kind, bool) {
	var (
		none  *grant.NodesExhaustedError
		limit *auth.LimitError
	)
	switch {
	case errors.As(err, new(*rateError)):
		return Busy, true
	case errors.As(err, &limit):
		if limit.Wait == 0 {
			return BatchTooLarge, true
		}
		return RateLimited, true
	case errors.As(err, new(*createError)) && errors.Is(err, auth.ErrUnauthorized):
		return Unauthorized, true
	case errors.As(err, new(*createError)):
		return Forbidden, true
	case errors.Is(err, context.Canceled):
		return Cancelled, true
	case errors.As(err, &none) && none.Ahead:
		return NotYet, true
	}
	for _, c := range errorKinds {
		if errors.Is(err, c.err) {
			return c.kind, true
		}
	}
	return ClockWrong, errors.As(err, new(*firn.ClockError))
}

// ProblemOf returns the Problem of an error of a Backend or its sources. limit
// is the limit of the request, and late reports whether it has passed.
func ProblemOf(err error, limit time.Duration, late bool) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	p := Problemf(kindOf(err), "%s", textfmt.Message(err))
	p.err = err
	if kinds[p.Kind].logged {
		p.Cause = err
	}
	var (
		wait  *firn.WaitError
		clock *firn.ClockError
		none  *grant.NodesExhaustedError
		rate  *rateError
		of    *auth.LimitError
	)
	switch {
	case errors.As(err, &rate):
		p.Retry = rate.Wait
	case errors.As(err, &of):
		p.Retry = of.Wait
	case p.Kind == NotYet && errors.As(err, &none):
		p.Retry = max(time.Until(none.Free), time.Second)
	case p.Kind == ClockAhead && errors.Is(err, grant.ErrComparingClocks):
		p.Retry = time.Second
	case p.Kind == Busy && errors.As(err, &wait):
		p.Detail, p.Retry = textfmt.Message(wait), wait.Wait
	case p.Kind == ClockWrong && errors.As(err, &clock):
		p.Retry, p.Cause = clock.Wait, nil // the wait ends by itself
	}
	switch p.Kind {
	case StoreUnavailable:
		// The log has the store's error, which may name hosts.
		p.Detail = "the store of node IDs could not be reached, read or written; see the server's log"
		if silent, ok := errors.AsType[*silentError](err); ok {
			p.Detail = fmt.Sprintf("the store of node IDs %s; the server keeps trying; see its log", silent.describe())
		} else if errors.Is(err, context.DeadlineExceeded) {
			p.Detail = "the store of node IDs did not answer in time; see the server's log"
		}
	case BatchTooLarge:
		if of != nil {
			break
		}
		p.Detail += fmt.Sprintf(": a request must be done in %v; ask for fewer IDs at a time", limit)
	case Internal:
		p.Detail = "see the server's log"
	}
	if late && p.Retry > 0 {
		p.Detail = fmt.Sprintf("the limit of %v for a request has passed: %s", limit, p.Detail)
	}
	if p.Retry > maxRetry && p.Kind != RateLimited {
		p.Retry = 0
	}
	return p
}

// problemType begins the type of a problem over HTTP; the name of its kind
// follows.
const problemType = "urn:firn:problem:"

// ReadProblem reads the body of an HTTP answer that is a problem: its kind, or
// the whole type if it is not one of Firn's, its title and its detail. They are
// "" if the body is not a problem.
func ReadProblem(body []byte) (kind, title, detail string) {
	var p struct{ Type, Title, Detail string }
	_ = json.Unmarshal(body, &p)
	return strings.TrimPrefix(p.Type, problemType), p.Title, p.Detail
}

// AdminProblem is ProblemOf for an error of a StoreAdmin about the named
// sequencer.
func AdminProblem(name string, err error, limit time.Duration, late bool) *Problem {
	switch {
	case errors.Is(err, grant.ErrNotFound):
		return Problemf(NoSequencer, "sequencer %s not found", name)
	case errors.Is(err, grant.ErrMismatch):
		return Problemf(Different, "%s", textfmt.Message(err))
	case errors.As(err, new(*CreationError)):
		p := Problemf(BadBody, "%v", err)
		p.err = err
		return p
	}
	return ProblemOf(err, limit, late)
}

// Level is the level at which to log the Cause. If the store does not answer or
// went back, every request fails: its watcher or the sequencer logs that once.
func (p *Problem) Level() slog.Level {
	if p.Kind == StoreUnavailable || p.Kind == StoreRolledBack {
		return slog.LevelDebug
	}
	return slog.LevelError
}

// maxRetry is the longest Retry-After. A longer wait does not end by itself:
// for example, the clock is years before the epoch.
const maxRetry = time.Hour
