package health

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
)

// Tell returns an Observer that logs when a Store begins to fail, with the
// reason, and when it works again, with the duration and the number of failed
// calls. A Store fails if it does not answer, and if it refuses calls, for
// example because it is full or read-only. In between, Tell logs calls at level
// debug. It passes everything on to next.
//
// A Store that cannot write may still read, for example if its disk hangs or
// its standby is missing: after a failed write, only a write shows that it
// answers again.
//
// For a Store that comes and goes, it logs once in tellEvery. It ignores calls
// that their caller has cancelled or gave almost no time. It also ignores Time,
// which a Store may not answer although it is up.
func Tell(log *slog.Logger, next grant.Observer) grant.Observer {
	t := &teller{log: log, next: next}
	return t.observe
}

const (
	tellEvery = 10 * time.Second
	littleOf  = 500 * time.Millisecond // calls with less time are ignored
)

type teller struct {
	log  *slog.Logger
	next grant.Observer

	mu     sync.Mutex // guards the fields below
	since  time.Time  // when it stopped answering; zero while it answers
	failed uint64     // calls since then
	write  bool       // one of these calls was a write
	said   bool       // the silence was logged
	last   time.Time  // when a silence was last logged
}

func (t *teller) observe(ctx context.Context, what string, key string) (context.Context, func(bool, error)) {
	call, end := t.next(ctx, what, key)
	if what == "time" {
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

// silent records a call that failed.
func (t *teller) silent(begin, now time.Time, what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() {
		t.since, t.failed, t.write = begin, 0, false
	}
	t.failed++
	t.write = t.write || what == "cas"
	level := slog.LevelDebug
	if !t.said && (t.last.IsZero() || now.Sub(t.last) >= tellEvery) {
		t.said, t.last, level = true, now, slog.LevelWarn
	}
	t.log.Log(context.Background(), level, "store call failed", "call", string(what), "error", err)
}

// answered records a call that did not fail.
func (t *teller) answered(now time.Time, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() || t.write && what != "cas" {
		return
	}
	if t.said {
		t.log.Info("store works again", "after", now.Sub(t.since).Round(time.Millisecond).String(), "failed", t.failed)
	}
	t.since, t.said = time.Time{}, false
}
