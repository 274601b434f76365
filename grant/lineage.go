package grant

import (
	"context"
	"math"
	"time"
)

// A lineageTracker remembers how far a store has advanced. Only one goroutine
// uses it at a time.
//
// A revision may include writes that only a read has shown, and that a failover
// loses without harm. So a revision counts only after two steps. First, a later
// write must be applied, which makes durable what the server showed before.
// Then the next answer must be no smaller, because the first answer and the
// write may have come from two servers.
type lineageTracker struct {
	store    Store
	identity string
	shown    int64     // the revision of the last answer
	settled  int64     // the greatest revision that was followed by an applied write
	durable  int64     // the greatest of these that was followed by another answer
	asked    time.Time // when the last answer came
}

func newLineageTracker(s Store) *lineageTracker {
	return &lineageTracker{store: s, shown: math.MinInt64, settled: math.MinInt64, durable: math.MinInt64}
}

// lineageValid is how long an answer about the lineage is valid. A member that
// acquires a node ID asks once instead of three times, and no store goes back
// or completes a failover in that time.
const lineageValid = time.Second

// wentBack asks the store for its lineage. While it does not answer, nothing is
// written, because it may have gone back.
func (l *lineageTracker) wentBack(ctx context.Context) (bool, error) {
	s, ok := As[Lineage](l.store)
	if !ok || time.Since(l.asked) < lineageValid {
		return false, nil
	}
	identity, revision, err := s.Lineage(ctx)
	if err != nil {
		return false, err
	}
	back := l.identity != "" && (identity != l.identity || revision < l.durable)
	switch {
	case back:
		l.settled, l.durable = math.MinInt64, math.MinInt64
	case revision < l.settled:
		l.settled = l.durable // another server applied the write
	default:
		l.durable = l.settled
	}
	l.identity, l.shown, l.asked = identity, revision, time.Now()
	return back, nil
}

// applied records that the store applied a write after its last answer.
func (l *lineageTracker) applied() { l.settled = max(l.settled, l.shown) }
