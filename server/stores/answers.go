package stores

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
)

// An Answers knows whether a Store has answered the last call that was made of
// it, and for how long it has not. Its zero value knows of no call. It is safe
// for use by many goroutines at once.
type Answers struct {
	mu            sync.Mutex // guards what follows
	up, known     bool
	reads, writes silence
}

// A silence is a time without an answer to calls of one sort.
type silence struct {
	answered time.Time // when the last call ended that was answered
	since    time.Time // when the first call began that failed after that; zero if none did
	failed   time.Time // when the last of these ended

	pending int       // calls under way
	waiting time.Time // since when one is, and none was answered
}

// Observe is a grant.Observer. Calls that their caller has given up do not
// count, and neither does Time: a Store may be up and not say its time.
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
		s.waiting = begin
	}
	return ctx, func(_ bool, err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		s.pending--
		if errors.Is(err, grant.ErrDamaged) {
			err = nil // a Store that finds a record damaged has answered
		}
		if err != nil && errors.Is(ctx.Err(), context.Canceled) {
			return
		}
		a.up, a.known = err == nil, true
		now := time.Now()
		switch {
		case err != nil:
			s.fail(begin, now)
		case s == &a.writes || !a.reads.since.IsZero():
			// A Store that writes also reads. One that was silent as a whole and reads
			// again may write again.
			a.reads.end(now)
			a.writes.end(now)
		default:
			s.end(now)
		}
	}
}

// end notes that a call was answered.
func (s *silence) end(now time.Time) {
	s.answered, s.since, s.waiting = now, time.Time{}, now
}

// fail notes that a call was not.
func (s *silence) fail(begin, now time.Time) {
	if s.since.IsZero() || begin.Sub(s.failed) > silentFor {
		s.since = begin
		if s.answered.After(begin) { // others were answered while it was under way
			s.since = s.answered
		}
	}
	s.failed = now
}

// Up reports whether the last call was answered; known is false as long as
// there was none.
func (a *Answers) Up() (up, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.up, a.known
}

// silentFor is how long what a call has shown counts, if no other call is made.
const silentFor = 15 * time.Second

// Silent is how long the Store has answered no read and no write, as far as
// calls were made: from the beginning of the first that failed to the end of
// the last, or as long as one is under way. A Store that cannot write, such as
// a database whose standby is missing, may answer reads. A time is 0 if the
// last such call was answered, or is long ago.
func (a *Answers) Silent() (reads, writes time.Duration) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reads.lasts(now), a.writes.lasts(now)
}

func (s *silence) lasts(now time.Time) (d time.Duration) {
	if !s.since.IsZero() && now.Sub(s.failed) <= silentFor {
		d = s.failed.Sub(s.since)
	}
	if s.pending > 0 {
		d = max(d, now.Sub(s.waiting))
	}
	return d
}
