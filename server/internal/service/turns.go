package service

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
)

// A maker makes the IDs of a Sequencer: a generator, or a sequencer of a store.
type maker[I firn.AnyID[I]] interface {
	firn.SourceOf[I]
	Trier[I]
}

// A turns is a maker that answers calls in the order of their arrival, however
// many IDs each requests, if more are requested than there is room for. It is
// safe for concurrent use.
type turns[I firn.AnyID[I]] struct {
	m       maker[I]
	layout  firn.Layout
	waiting *atomic.Int64 // calls waiting for their turn
}

func turnsOf[I firn.AnyID[I]](m maker[I], l firn.Layout) turns[I] {
	return turns[I]{m, l, new(atomic.Int64)}
}

// TryNext makes an ID that is available and that no earlier call waits for. A
// generator's own TryNext would take it from them.
func (t turns[I]) TryNext() (id I, err error) {
	if t.waiting.Load() == 0 {
		return t.m.TryNext()
	}
	b, err := t.m.TryNextBatch(1)
	for id = range b.All() {
	}
	return id, err
}

// TryNextBatch makes IDs that are available and that no earlier call waits for.
func (t turns[I]) TryNextBatch(n int) (firn.BatchOf[I], error) { return t.m.TryNextBatch(n) }

// NextBatch waits for its turn, and for the IDs.
func (t turns[I]) NextBatch(ctx context.Context, n int) (b firn.BatchOf[I], err error) {
	if err := ctx.Err(); err != nil {
		return b, err
	}
	b, err = t.m.TryNextBatch(n)
	if err != nil && isWait(err) {
		b, err = t.wait(ctx, n, err)
	}
	return b, err
}

// wait is NextBatch after a refusal.
func (t turns[I]) wait(ctx context.Context, n int, refusal error) (b firn.BatchOf[I], err error) {
	first := t.waiting.Add(1) == 1
	defer t.waiting.Add(-1)
	if first || !errors.Is(refusal, firn.ErrExhausted) {
		return t.m.NextBatch(ctx, n)
	}
	limited, cancel := WithTurn(ctx, t.layout, n)
	defer cancel()
	b, err = t.m.NextBatch(limited, n)
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
func WithTurn(ctx context.Context, l firn.Layout, n int) (context.Context, context.CancelFunc) {
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
