package service

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/veil"
)

// A Front is what a protocol calls for its clients: it decides what they may
// do, takes IDs, reads IDs, and finds the administration of the store. Its
// errors are Problems. It is safe for concurrent use. Only the Backend is
// required, and WithDefaults completes the rest.
type Front struct {
	Backend  Backend         // finds the sequencers
	Auth     auth.Authorizer // decides what each client may do; nil allows everything
	VeilKeys veil.Keys       // of veiled IDs; zero if the server has none
	Limits   Limits          // of requests and connections
	Issued   IssueFunc       // is called with IDs before they are answered; nil calls nothing

	// RequestTimeout is how long a request may wait, unless its own deadline is
	// earlier; 0 means DefaultRequestTimeout.
	RequestTimeout time.Duration

	// Observe is called for each request of the protocol, also for invalid
	// ones, with the kind of problem and the time that each of n equal requests
	// took, which were answered at once. It must be fast; nil observes nothing.
	Observe func(k Kind, d time.Duration, n int)

	// Logger receives changes, the server's own failures, and every request at
	// level debug; nil discards them. The context of a line has the request ID,
	// see package requestid.
	Logger *slog.Logger

	SendToken     string // how clients of the protocol send a token; set by the protocol
	NameSequencer string // how they name the sequencer of a veiled ID; set by the protocol
}

// WithDefaults returns the Front with defaults for a zero RequestTimeout,
// Limits, Observe and Logger. It panics without a Backend.
func (f Front) WithDefaults() Front {
	if f.Backend == nil {
		panic("service: a Front needs a Backend")
	}
	f.RequestTimeout, f.Limits = cmp.Or(f.RequestTimeout, DefaultRequestTimeout), f.Limits.WithDefaults()
	f.Logger = cmp.Or(f.Logger, slog.New(slog.DiscardHandler))
	if f.Observe == nil {
		f.Observe = func(Kind, time.Duration, int) {}
	}
	return f
}

// Limited returns a context that ends when a request has waited for too long.
func (f *Front) Limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, f.RequestTimeout)
}

// An IssueFunc is called when a client is about to receive a batch of the named
// sequencer. The context may have a request ID. The batch is a copy: a pointer
// would cost an allocation, even if the function is nil.
type IssueFunc func(ctx context.Context, c *auth.Credentials, name string, b Batch)

// ParseCount reads the number of IDs of a request. A number above the limit is
// BatchTooLarge, after which clients ask for fewer.
func (f *Front) ParseCount(text []byte) (n int, p *Problem) {
	for _, digit := range text {
		if digit < '0' || digit > '9' {
			n = 0
			break
		}
		n = min(10*n+int(digit-'0'), MaxCount+1)
	}
	if n < 1 || n > f.Limits.Count {
		return 0, f.wrongCount(n, string(text))
	}
	return n, nil
}

// CheckCount is ParseCount for a number.
func (f *Front) CheckCount(n int64) *Problem {
	if n < 1 || n > int64(f.Limits.Count) {
		return f.wrongCount(int(min(n, MaxCount+1)), strconv.FormatInt(n, 10))
	}
	return nil
}

func (f *Front) wrongCount(n int, text string) *Problem {
	kind := BadParameter
	if n > f.Limits.Count {
		kind = BatchTooLarge
	}
	return Problemf(kind, "count is %s: it must be a number from 1 to %d", textfmt.Quote(text), f.Limits.Count)
}

// Allow returns nil if a client may perform an action on the named sequencer.
func (f *Front) Allow(c *auth.Credentials, do auth.Action, name string) *Problem {
	if f.Auth == nil {
		return nil
	}
	err := f.Auth.Allow(c, do, name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auth.ErrForbidden):
		return Problemf(Forbidden, "%v", err)
	case errors.Is(err, auth.ErrCertificate):
		return Problemf(Unauthorized, "%v", err)
	}
	return Problemf(Unauthorized, "%v: send a token %s", err, f.SendToken)
}

// CheckTake returns why a client cannot take IDs of a sequencer, as far as that
// is known without it.
func (f *Front) CheckTake(c *auth.Credentials, name string) *Problem {
	if p := f.Allow(c, auth.Take, name); p != nil {
		return p
	}
	return problemOfName(name)
}

// Take takes IDs of a sequencer for a client that Allow allows to take them. It
// first tries. If the sequencer has to be opened or IDs are not free yet, it
// waits for both, at most for the limit. A sequencer that does not exist is
// created if the client may create it. The client is charged for the IDs, and
// for the request. A call that returns a Problem has taken nothing, as far as
// possible.
//
// The IDs are written to b, which keeps frames small: the compiler copies a
// Batch that is returned up to three times in each, and an idle connection
// keeps the stack that its deepest call needed.
func (f *Front) Take(ctx context.Context, c *auth.Credentials, name string, r *Request, b *Batch) *Problem {
	if err := c.Charge(name, r.Count); err != nil {
		return ProblemOf(err, f.RequestTimeout, false)
	}
	p := f.take(ctx, c, name, r, b)
	f.settleAndReport(ctx, c, name, r.Count, b, p == nil)
	return p
}

// settleAndReport charges a client for the n IDs that it has got, and reports
// them; or it takes the charge back.
func (f *Front) settleAndReport(ctx context.Context, c *auth.Credentials, name string, n int, b *Batch, got bool) {
	c.Settle(name, n, got)
	if got && f.Issued != nil {
		f.Issued(ctx, c, name, *b)
	}
}

func (f *Front) take(ctx context.Context, c *auth.Credentials, name string, r *Request, b *Batch) *Problem {
	if err := ctx.Err(); err != nil {
		return ProblemOf(err, f.RequestTimeout, false)
	}
	s := f.Backend.Opened(name) // which has a valid name
	if s == nil {
		return f.takeWaiting(ctx, c, name, r, b, nil, nil)
	}
	if p := r.fit(s); p != nil {
		return p
	}
	var err error
	if *b, err = s.Try(r.Count); err != nil {
		return f.takeWaiting(ctx, c, name, r, b, s, err)
	}
	return nil
}

// takeWaiting waits for the IDs that s has refused, or for s if that is nil.
func (f *Front) takeWaiting(ctx context.Context, c *auth.Credentials, name string, r *Request, b *Batch, s *Sequencer,
	refusal error,
) *Problem {
	if s == nil {
		if p := problemOfName(name); p != nil {
			return p
		}
	}
	if r.Wait != nil {
		ctx = r.Wait()
	}
	limited, cancel := f.Limited(ctx)
	defer cancel()
	var err error
	if s != nil {
		*b, err = s.waitInLine(limited, r.Count, refusal)
	} else if s, err = f.open(limited, c, name, r); err == nil {
		if p := r.fit(s); p != nil {
			return p
		}
		*b, err = s.Take(limited, r.Count)
	}
	if err != nil {
		return ProblemOf(err, f.RequestTimeout, limited.Err() != nil)
	}
	return nil
}

// Try is Take for several requests of one ID each, which are answered together
// from one batch of r.Count IDs. It takes none and returns false if they are
// not available without waiting, or the client has limits.
func (f *Front) Try(ctx context.Context, c *auth.Credentials, name string, r *Request, b *Batch) (ok bool) {
	s := f.Backend.Opened(name)
	if s == nil || r.fit(s) != nil || c.Limited(name) {
		return false
	}
	var err error
	*b, err = s.Try(r.Count)
	f.settleAndReport(ctx, c, name, r.Count, b, err == nil)
	return err == nil
}

// open returns the sequencer of a request, which is created if necessary and if
// the client may create it.
func (f *Front) open(ctx context.Context, c *auth.Credentials, name string, r *Request) (*Sequencer, error) {
	// A copy of the credentials, because opening may outlast the call.
	return f.Backend.Sequencer(ctx, name, &Creator{*c, f.Auth, r.MustExist, r.Format.IsTyped()})
}

// Admin returns the administration of the store for a client that Allow allows
// to use it, on the named sequencer if there is a name. Its lists have what the
// client may see, and changes are logged with the client.
func (f *Front) Admin(c *auth.Credentials, name ...string) (*StoreAdmin, *Problem) {
	for _, name := range name {
		if p := problemOfName(name); p != nil {
			return nil, p
		}
	}
	a := f.Backend.Admin()
	if a == nil {
		return nil, Problemf(NoStore, "this server runs with a static node ID and without a store: "+
			"start it with --store to administer sequencers")
	}
	a = a.By(clientOf(c), f.Logger)
	a.sees = func(name string) bool { return f.Allow(c, auth.See, name) == nil }
	a.seesAll = f.Allow(c, auth.SeeAll, "") == nil
	return a, nil
}
