package health

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	tellEvery = 10 * time.Second
	littleOf  = 500 * time.Millisecond // failed calls with less time are not logged
)

// An outage is the time in which a Store fails: it does not answer, or refuses
// calls, for example because it is full or read-only.
//
// A Store that cannot write may still read, for example if its disk hangs or
// its standby is missing: after a failed write, only a write shows that it
// works again.
type outage struct {
	mu     sync.Mutex // guards the fields below
	since  time.Time  // when it began; zero while the Store works
	failed uint64     // calls since then
	write  bool       // one of these calls was a write
	said   bool       // the outage was logged
	last   time.Time  // when an outage was last logged
}

// note logs the first failed call of an outage, and its end with the duration
// and the number of failed calls; at level debug other failed calls too. For a
// Store that comes and goes, it logs once in tellEvery.
func (o *outage) note(log *slog.Logger, begin, now time.Time, what string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		if o.since.IsZero() {
			o.since, o.failed, o.write = begin, 0, false
		}
		o.failed++
		o.write = o.write || what == "cas"
		level := slog.LevelDebug
		if !o.said && (o.last.IsZero() || now.Sub(o.last) >= tellEvery) {
			o.said, o.last, level = true, now, slog.LevelWarn
		}
		log.Log(context.Background(), level, "store call failed", "call", what, "error", err)
		return
	}
	if o.since.IsZero() || o.write && what != "cas" {
		return
	}
	if o.said {
		log.Info("store works again", "after", now.Sub(o.since).Round(time.Millisecond).String(), "failed", o.failed)
	}
	o.since, o.said = time.Time{}, false
}
