// Package storehealth says how a server's store is doing: whether it answers,
// what is dangerous about it, and what to do until it can be opened.
package storehealth

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
)

// An Answers records whether a Store answered the last call, and how long it
// has been silent, and logs when it begins to fail and when it works again. The
// zero value knows of no call. It is safe for concurrent use.
type Answers struct {
	Logger *slog.Logger // nil logs nothing

	mu            sync.Mutex // guards the fields below
	known         bool
	reads, writes silence
	began         time.Time // when the current outage began; zero without one
	failed        int       // calls since then
	warned        bool      // of the current outage
	lastWarned    time.Time // when an outage was last logged
}

// A silence is the time without an answer to calls of one kind.
type silence struct {
	answered time.Time // when the last answered call ended
	since    time.Time // when the first call that failed after that began; zero if none failed
	failed   time.Time // when the last failed call ended
	why      error     // of that call; nil if it had no answer in time

	pending      int       // calls in progress
	pendingSince time.Time // since when some call is in progress and none was answered
}

const (
	warnEvery = 10 * time.Second       // between warnings of a Store that comes and goes
	shortCall = 500 * time.Millisecond // failed calls with less time are not logged
)

// Observe is a grant.Observer. It ignores calls that their caller has
// cancelled, and calls of Time: a Store may be up and not report its time. A
// call that was ended for another reason, such as the Store's silence, failed.
func (a *Answers) Observe(ctx context.Context, what grant.Request, _ string) (context.Context, func(bool, error)) {
	if what == grant.RequestTime {
		return ctx, func(bool, error) {}
	}
	begin := time.Now()
	s := &a.reads
	if what == grant.RequestCAS {
		s = &a.writes
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.pending++; s.pending == 1 {
		s.pendingSince = begin
	}
	return ctx, func(_ bool, err error) {
		now := time.Now()
		if errors.Is(err, grant.ErrDamaged) {
			err = nil // a Store that finds a record damaged has answered
		}
		givenUp := err != nil && errors.Is(context.Cause(ctx), context.Canceled)
		tooShort := err != nil && ctx.Err() != nil && now.Sub(begin) < shortCall
		a.mu.Lock()
		defer a.mu.Unlock()
		s.pending--
		if givenUp {
			return
		}
		a.known = true
		switch {
		case err != nil:
			s.fail(begin, now, err)
		case s == &a.writes || !a.reads.since.IsZero():
			// A Store that can write can also read. After a complete silence,
			// one that can read again may be able to write again.
			a.reads.end(now)
			a.writes.end(now)
		default:
			s.end(now)
		}
		if a.Logger != nil && !tooShort {
			a.log(begin, now, what, err)
		}
	}
}

// log logs the first failed call of an outage, and its end with the duration
// and the number of failed calls; at level debug other failed calls too. The
// caller holds mu.
func (a *Answers) log(begin, now time.Time, what grant.Request, err error) {
	if err != nil {
		if a.began.IsZero() {
			a.began, a.failed = begin, 0
		}
		a.failed++
		level := slog.LevelDebug
		if !a.warned && (a.lastWarned.IsZero() || now.Sub(a.lastWarned) >= warnEvery) {
			a.warned, a.lastWarned, level = true, now, slog.LevelWarn
		}
		a.Logger.Log(context.Background(), level, "store call failed", "call", what, "error", err)
		return
	}
	if a.began.IsZero() || !a.up() {
		return
	}
	if a.warned {
		a.Logger.Info("store works again", "after", now.Sub(a.began).Round(time.Millisecond).String(), "failed",
			a.failed)
	}
	a.began, a.warned = time.Time{}, false
}

// up reports whether the last read and the last write succeeded. The caller
// holds mu.
func (a *Answers) up() bool { return a.reads.since.IsZero() && a.writes.since.IsZero() }

// end records a call that was answered.
func (s *silence) end(now time.Time) {
	s.answered, s.since, s.why, s.pendingSince = now, time.Time{}, nil, now
}

// fail records a call that was not.
func (s *silence) fail(begin, now time.Time, err error) {
	if s.since.IsZero() || begin.Sub(s.failed) > silentFor {
		s.since = begin
		if s.answered.After(begin) { // other calls were answered in the meantime
			s.since = s.answered
		}
	}
	s.failed, s.why = now, err
	if errors.Is(err, context.DeadlineExceeded) {
		s.why = nil
	}
}

// Up reports whether the last read and the last write succeeded; known is false
// before the first call.
func (a *Answers) Up() (up, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known && a.up(), a.known
}

// silentFor is how long the result of a call is used if no other call follows.
const silentFor = 15 * time.Second

// Silent returns how long the Store has answered no read and no write, as far
// as calls were made: from the beginning of the first failed call to the end of
// the last, or until now if one is in progress. A Store that cannot write, such
// as a database without its standby, may answer reads. A time is 0 if the last
// such call was answered, or was long ago. why is the error of the last failed
// call, such as a full disk; nil if the Store did not answer it in time.
func (a *Answers) Silent() (reads, writes time.Duration, why error) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if why = a.writes.why; why == nil {
		why = a.reads.why
	}
	return a.reads.duration(now), a.writes.duration(now), why
}

func (s *silence) duration(now time.Time) (d time.Duration) {
	if !s.since.IsZero() && now.Sub(s.failed) <= silentFor {
		d = s.failed.Sub(s.since)
	}
	if s.pending > 0 {
		d = max(d, now.Sub(s.pendingSince))
	}
	return d
}
