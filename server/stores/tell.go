package stores

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
)

// Tell returns an Observer that logs when a Store begins to fail, with the
// reason, and when it works again, with how long that took and how many calls
// failed meanwhile. It may not answer, or refuse calls because it is full or has
// become read-only. In between, single calls have the level debug. It passes all
// on to next.
//
// A Store that does not write may still read, such as one whose disk hangs or
// whose standby is missing: once a write has failed, only a write shows that it
// answers again.
//
// A Store that comes and goes is told of once in tellEvery. Calls that their
// caller has given up, or gave no time to speak of, say nothing about the
// Store. Nor does Time, which a Store may not answer although it is up.
func Tell(log *slog.Logger, next grant.Observer) grant.Observer {
	t := &teller{log: log, next: next}
	return t.observe
}

const (
	tellEvery = 10 * time.Second
	littleOf  = 500 * time.Millisecond // so much time is no time to speak of
)

type teller struct {
	log  *slog.Logger
	next grant.Observer

	mu     sync.Mutex // guards what follows
	since  time.Time  // when it stopped answering; zero while it answers
	failed uint64     // calls since then
	write  bool       // one of these was a write
	said   bool       // the log knows
	last   time.Time  // when the log was told that it does not answer
}

func (t *teller) observe(ctx context.Context, what grant.Request, key string) (context.Context, func(bool, error)) {
	call, end := t.next(ctx, what, key)
	if what == grant.RequestTime {
		return call, end
	}
	begin := time.Now()
	return call, func(applied bool, err error) {
		end(applied, err)
		now := time.Now()
		switch {
		case err == nil, errors.Is(err, grant.ErrDamaged):
			t.answered(now, what)
		case errors.Is(ctx.Err(), context.Canceled), ctx.Err() != nil && now.Sub(begin) < littleOf:
		default:
			t.silent(begin, now, what, err)
		}
	}
}

// silent notes a call that failed.
func (t *teller) silent(begin, now time.Time, what grant.Request, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() {
		t.since, t.failed, t.write = begin, 0, false
	}
	t.failed++
	t.write = t.write || what == grant.RequestCAS
	level := slog.LevelDebug
	if !t.said && (t.last.IsZero() || now.Sub(t.last) >= tellEvery) {
		t.said, t.last, level = true, now, slog.LevelWarn
	}
	t.log.Log(context.Background(), level, "store call failed", "call", string(what), "error", err)
}

// answered notes a call that did not.
func (t *teller) answered(now time.Time, what grant.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() || t.write && what != grant.RequestCAS {
		return
	}
	if t.said {
		t.log.Info("store works again", "after", now.Sub(t.since).Round(time.Millisecond).String(), "failed", t.failed)
	}
	t.since, t.said = time.Time{}, false
}
