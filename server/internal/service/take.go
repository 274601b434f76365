package service

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
)

// A Taker takes IDs for the clients of a protocol.
type Taker struct {
	Backend Backend
	Auth    auth.Authorizer // decides who creates sequencers; nil allows everyone
	Limit   time.Duration   // how long a call of Take may wait
}

// Terms are a protocol's part in a call of Take. Neither function is required.
type Terms struct {
	// Fit returns an error if the client cannot be given IDs of a sequencer. It
	// is called before any ID is taken, perhaps twice.
	Fit func(*Sequencer) error

	// Typed means that the client requests typed text: a sequencer is created only
	// if it has a prefix.
	Typed bool

	// MustExist means that the request creates no sequencer.
	MustExist bool

	// Wait is called before the call waits. It returns the context to wait in.
	Wait func() context.Context
}

// fits returns an error if the client cannot be given IDs of a sequencer.
func (t *Terms) fits(s *Sequencer) error {
	if t.Fit == nil {
		return nil
	}
	return t.Fit(s)
}

// Take takes n IDs of the named sequencer for a client that may take them. It
// first tries. If the sequencer has to be opened or IDs are not free yet, it
// waits for both, at most for the limit. A sequencer that does not exist is
// created if the client with these credentials may create it. A call that
// returns an error has taken nothing, as far as possible.
func (t *Taker) Take(ctx context.Context, name string, c *auth.Credentials, n int, terms Terms) (b Batch, err error) {
	if err := ctx.Err(); err != nil {
		return b, err
	}
	s := t.Backend.Opened(name)
	if s != nil {
		if err = terms.fits(s); err != nil {
			return b, err
		}
		if b, err = s.Try(n); err == nil {
			return b, nil
		}
	}
	if terms.Wait != nil {
		ctx = terms.Wait()
	}
	limited, cancel := context.WithTimeout(ctx, t.Limit)
	defer cancel()
	if s != nil {
		b, err = s.wait(limited, n, err)
	} else if s, err = t.find(limited, name, c, &terms); err == nil {
		if err = terms.fits(s); err == nil {
			b, err = s.Take(limited, n)
		}
	}
	if err != nil && limited.Err() != nil {
		err = &lateError{err}
	}
	return b, err
}

// Try is Take for IDs that are available without waiting.
func (t *Taker) Try(name string, n int, terms Terms) (b Batch, err error) {
	s := t.Backend.Opened(name)
	if s == nil {
		return b, errNotTried
	}
	if err := terms.fits(s); err != nil {
		return b, err
	}
	return s.Try(n)
}

// Find returns the sequencer of a name, which is created if necessary and if
// the client with these credentials may create it.
func (t *Taker) Find(ctx context.Context, name string, c *auth.Credentials) (*Sequencer, error) {
	return t.find(ctx, name, c, new(Terms))
}

// find is Find for a request with these Terms.
func (t *Taker) find(ctx context.Context, name string, c *auth.Credentials, terms *Terms) (*Sequencer, error) {
	if s := t.Backend.Opened(name); s != nil {
		return s, nil
	}
	mine, typed, mustExist := *c, terms.Typed, terms.MustExist // copies, because opening may outlast the call
	return t.Backend.Sequencer(ctx, name, func(prefix string) (*auth.Credentials, error) {
		if t.Auth != nil {
			if err := t.Auth.Allow(&mine, auth.Create, name); err != nil {
				return &mine, err
			}
		}
		if mustExist {
			return &mine, fmt.Errorf("%w %s: a GET without a token creates none on this server; send a POST, or create it first", ErrNoSequencer, name)
		}
		if typed && prefix == "" {
			return &mine, errNoPrefix
		}
		return &mine, nil
	})
}

var errNoPrefix = errors.New("the sequencer has no prefix for typed text, and was not created: create it with firn sequencer create --prefix, or set prefix in its template; both need a store")

// A lateError is an error of a call whose limit has passed.
type lateError struct{ error }

func (e *lateError) Unwrap() error { return e.error }

// A CreateError means that a client may not create the sequencer that it uses.
type CreateError struct {
	Name  string
	Cause error
}

func (e *CreateError) Error() string {
	return fmt.Sprintf("sequencer %s does not exist, and was not created: %v", e.Name, e.Cause)
}

func (e *CreateError) Unwrap() error { return e.Cause }

// allowed returns the client that creates a sequencer by using it, or why it
// may not.
func (by Creator) allowed(name, prefix string) (*auth.Credentials, error) {
	if by == nil {
		return new(auth.Credentials), nil
	}
	c, err := by(prefix)
	switch {
	case err == errNoPrefix || errors.Is(err, ErrNoSequencer):
		return nil, err
	case err != nil:
		return nil, &CreateError{Name: name, Cause: err}
	}
	return c, nil
}

// client returns the name of the client, "" without one.
func (by Creator) client() string {
	if by != nil {
		if c, _ := by(""); c != nil {
			return c.Name()
		}
	}
	return ""
}

// errNotTried means that a source cannot make IDs without waiting.
var errNotTried = errors.New("IDs are not available without waiting")

// A line is the calls that wait for the IDs of a source.
type line struct {
	layout  *firn.Layout
	next    func(ctx context.Context, n int) (Batch, error)
	waiting atomic.Int64 // calls that wait for their turn
}

// isWait reports whether an error of a call that does not wait means that a
// waiting call would have waited.
func isWait(err error) bool {
	return err == errNotTried || errors.Is(err, firn.ErrExhausted) || errors.As(err, new(*firn.ClockError)) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// wait waits for its turn, and for the IDs, after a refusal of try. The first
// call that waits has its turn, and all of its limit.
func (l *line) wait(ctx context.Context, n int, refusal error) (b Batch, err error) {
	if !isWait(refusal) {
		return b, refusal
	}
	first := l.waiting.Add(1) == 1
	defer l.waiting.Add(-1)
	if first || !errors.As(refusal, new(*firn.WaitError)) { // no line: the sequencer has no window, for one
		return l.next(ctx, n)
	}
	limited, cancel := WithTurn(ctx, l.layout, n)
	defer cancel()
	b, err = l.next(limited, n)
	if wait := (*firn.WaitError)(nil); limited.Err() != nil && ctx.Err() == nil && errors.As(err, &wait) {
		return b, wait // the caller's own limit has not passed
	}
	return b, err
}

// WithTurn returns the context in which a call for n IDs waits for its turn. If
// more IDs are requested than there is room for, the line grows until calls
// reach their limits in it. A large call, whose turn takes time, would then
// never be answered. So all calls have the same time to wait for their turn:
// what the largest request leaves of the limit, but at least half of it.
func WithTurn(ctx context.Context, l *firn.Layout, n int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	left := time.Until(deadline)
	takes := func(n int) time.Duration {
		return time.Duration(min(float64(left), float64(n)/l.IDsPerSecond()*float64(time.Second)))
	}
	return context.WithDeadline(ctx, deadline.Add(-min(takes(MaxCount)-takes(n), left/2)))
}
