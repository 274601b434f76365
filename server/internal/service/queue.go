package service

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
)

// errNotTried means that a source cannot make IDs without waiting.
var errNotTried = errors.New("IDs are not available without waiting")

// A queue is a source of IDs, and the calls that wait for it.
type queue struct {
	layout  *firn.Layout
	try     func(n int) (Batch, error) // without waiting
	next    func(ctx context.Context, n int) (Batch, error)
	waiting atomic.Int64 // calls that wait for their turn
}

func newQueue[I firn.AnyID](layout firn.Layout, from source[I]) *queue {
	return &queue{layout: &layout, try: func(n int) (out Batch, err error) {
		b, err := from.TryNextBatch(n)
		if err == nil {
			err = setBatch(&out, &layout, &b, n)
		}
		return out, err
	}, next: func(ctx context.Context, n int) (out Batch, err error) {
		b, err := from.NextBatch(ctx, n)
		if err == nil {
			err = setBatch(&out, &layout, &b, n)
		}
		return out, err
	}}
}

// isWait reports whether an error of a call that does not wait means that a
// waiting call would have waited, or may have: a batch that is too large for
// the one need not be for the other.
func isWait(err error) bool {
	return err == errNotTried || errors.Is(err, firn.ErrExhausted) || errors.Is(err, firn.ErrUnavailable) ||
		errors.Is(err, firn.ErrBatchTooLarge) ||
		errors.As(err, new(*firn.ClockError)) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// waitInLine waits for its turn, and for the IDs, after a refusal of try. The
// first call that waits has its turn, and all of its limit.
func (q *queue) waitInLine(ctx context.Context, n int, refusal error) (b Batch, err error) {
	if !isWait(refusal) {
		return b, refusal
	}
	first := q.waiting.Add(1) == 1
	defer q.waiting.Add(-1)
	if first || !errors.As(refusal, new(*firn.WaitError)) && !errors.Is(refusal, firn.ErrBatchTooLarge) {
		return q.next(ctx, n) // there is no line: the sequencer has no window, for one
	}
	limited, cancel := WithTurn(ctx, q.layout, n)
	defer cancel()
	b, err = q.next(limited, n)
	if wait, ok := errors.AsType[*firn.WaitError](err); ok && limited.Err() != nil && ctx.Err() == nil {
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
