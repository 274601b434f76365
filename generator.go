package firn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/firnid/firn/internal/freshness"
)

// A Generator makes 64-bit IDs for the node of its Grant. See GeneratorOf for
// its methods.
type Generator = GeneratorOf[ID]

// A GeneratorOf is a Generator of 64-bit or 128-bit IDs.
//
// A Generator is safe for concurrent use by multiple goroutines. Taking an ID
// that is free needs no lock, and no call spins or holds a lock while it waits.
// IDs strictly increase, whatever the clock does: if the layout is Ordered, a
// call that begins after another has returned gets a higher ID.
//
// If the clock or a context panics, or ends the goroutine, only that call ends.
// It takes no ID (Fill: no further ones), and other calls are not affected. A
// nil context panics at once, even if no wait is needed.
//
// A Generator must be made by NewGenerator or NewGenerator128 and must not be
// copied.
type GeneratorOf[I AnyID] struct{ core }

// NewGenerator returns a generator for IDs of layout. It does not call
// Options.Now.
//
// It is an error if the layout does not have 64 bits or cannot be generated, if
// the node ID does not fit, or if the grant is empty.
func NewGenerator(layout Layout, grant Grant, o *Options) (*Generator, error) {
	return makeGenerator[ID](layout, grant, o, 64, "NewGenerator128")
}

// NewGenerator128 is like NewGenerator, for layouts of 128 bits.
func NewGenerator128(layout Layout, grant Grant, o *Options) (*GeneratorOf[ID128], error) {
	return makeGenerator[ID128](layout, grant, o, 128, "NewGenerator")
}

// makeGenerator returns a generator. size and twin are for the error about a
// layout of the wrong size.
func makeGenerator[I AnyID](layout Layout, grant Grant, o *Options, size uint8,
	twin string) (*GeneratorOf[I], error) {
	if err := layout.checkBits(size, twin); err != nil {
		return nil, err
	}
	g := new(GeneratorOf[I])
	if err := g.init(layout, grant, o); err != nil {
		return nil, err
	}
	return g, nil
}

// TryNext returns the next ID without waiting. If none is free, or a NextBatch
// call is first in line, the error is a *WaitError, which matches ErrExhausted.
// If the clock went back beyond MaxAhead or is before the epoch, it is a
// *ClockError. After ErrGrantOver, ErrTimeOver and ErrSealed, waiting does not
// help. A call that fails changes nothing.
func (g *GeneratorOf[I]) TryNext() (id I, err error) {
	t := g.term.Load()
	slot, n := t.takeFresh(freshness.Cycles(), 1)
	if n == 0 {
		if t, slot, _, err = g.take(&request{want: 1}); err != nil {
			return id, err
		}
	}
	put(&id, t, slot)
	return id, nil
}

// Next returns the next ID. It waits where TryNext returns a *WaitError, and
// also if the clock went back by up to MaxLag. It checks the context only if it
// has to wait. A call that its context ends has taken no ID, and its error
// matches both the context's error and the reason for the wait. Waiting calls
// are served in the order in which they arrived.
func (g *GeneratorOf[I]) Next(ctx context.Context) (id I, err error) {
	needContext(ctx)
	t := g.term.Load()
	slot, n := t.takeFresh(freshness.Cycles(), 1)
	if n == 0 {
		if t, slot, _, err = g.takeOrWait(ctx, request{want: 1}); err != nil {
			return id, err
		}
	}
	put(&id, t, slot)
	return id, nil
}

// Fill fills dst with the next len(dst) IDs, in order. It takes them in pieces
// as they become free, across waits and changes of the grant, so other calls
// may take IDs in between. After an error, the contents of dst must not be
// used; the IDs taken so far are lost.
func (g *GeneratorOf[I]) Fill(ctx context.Context, dst []I) error {
	needContext(ctx)
	for len(dst) > 0 {
		t, want := g.term.Load(), uint64(len(dst))
		slot, n := uint64(0), uint64(0)
		if !g.line.busy() {
			slot, n = t.takeFresh(freshness.Cycles(), want)
		}
		if n == 0 {
			var err error
			if t, slot, n, err = g.takeOrWait(ctx, request{want: want}); err != nil {
				return err
			}
		}
		g.batches.Add(1)
		newBatch[I](&t.composer, slot, int(n)).write(dst[:n])
		dst = dst[n:]
	}
	return nil
}

// Reserve takes n consecutive slots at once, regardless of MaxAhead; n must be
// at least 1. It returns how long the caller must hold the batch before using
// it, until its last ID is no more than MaxAhead ahead of the clock. Reserve
// never waits, and ignores how far the clock went back.
//
// Reserve takes nothing if the grant or the layout ends before the batch does
// (ErrGrantOver, ErrTimeOver), or while a NextBatch call is first in line
// (*WaitError). Under a static grant, the error is ErrBatchTooLarge for a batch
// that is too large, and a *WaitError or *ClockError while earlier reservations
// are too far ahead of the clock (see StaticGrant).
//
// The hold is computed as in Hazelcast: whole ticks from the clock's tick to
// the end of the batch, exclusive, minus MaxAhead.
func (g *GeneratorOf[I]) Reserve(n int) (b BatchOf[I], hold time.Duration, err error) {
	var r request
	if err := g.wantAll(&r, wantsReservation, n); err != nil {
		return b, 0, err
	}
	t, slot, got, err := g.take(&r)
	if err != nil {
		return b, 0, err
	}
	return g.batchAt(t, slot, got), r.hold, nil
}

// NextBatch returns the next n IDs, at consecutive slots; n must be at least 1.
// It waits in line like Next, and takes the batch once its last ID is no more
// than MaxAhead ahead of the clock, so a call that its context ends has taken
// no ID. While the call is first in line, no other call takes an ID, except
// those that the last reading of the clock allows, for 50 µs at most.
//
// A batch too large for MaxAhead takes as long as the time it spans, minus
// MaxAhead. Its first IDs are that old when it returns, but not older than the
// call. The error is ErrBatchTooLarge, at once, if the context's deadline is
// earlier, or if the batch spans more than a static grant allows (see
// StaticGrant). Fill makes any number of IDs and lets other calls in between.
func (g *GeneratorOf[I]) NextBatch(ctx context.Context, n int) (b BatchOf[I], err error) {
	needContext(ctx)
	var r request
	if err := g.wantAll(&r, wantsBatch, n); err != nil {
		return b, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		// An idle generator needs this long.
		own := max(0, g.spanOf(r.want)-g.layout.unit-g.maxAhead)
		if left := time.Until(deadline); own > 0 && left < own {
			return b, fmt.Errorf("%w: %d IDs take %v, and the deadline is in %v: %w",
				ErrBatchTooLarge, n, own, max(0, left), context.DeadlineExceeded)
		}
	}
	t, slot, got, err := g.takeOrWait(ctx, r)
	if err != nil {
		return b, err
	}
	b = g.batchAt(t, slot, got)
	return b, nil
}

// TryNextBatch is like NextBatch but never waits: where NextBatch would wait,
// the error is a *WaitError or a *ClockError, and no ID is taken. It is
// ErrBatchTooLarge if no wait would help, because the batch spans more than
// MaxAhead ever allows beyond the clock's tick.
func (g *GeneratorOf[I]) TryNextBatch(n int) (b BatchOf[I], err error) {
	var r request
	if err := g.wantAll(&r, wantsBatch, n); err != nil {
		return b, err
	}
	var t *term
	var slot, got uint64
	if g.line.busy() {
		err = g.notYourTurnError(g.line.want.Load(), r.want) // other calls came first
	} else {
		t, slot, got, err = g.take(&r)
	}
	if err != nil {
		if errors.Is(err, ErrExhausted) && r.want > g.maxAtOnce() {
			err = fmt.Errorf("%w: %d IDs span %v, more than MaxAhead, %v, allows at once: use NextBatch, which waits, "+
				"or Fill", ErrBatchTooLarge, n, g.spanOf(r.want), g.maxAhead)
		}
		return b, err
	}
	b = g.batchAt(t, slot, got)
	return b, nil
}

// Extend moves the end of the current grant to until; the zero time means no
// end. A time before the current end is an error and changes nothing. After
// Seal, the error is ErrSealed.
func (g *GeneratorOf[I]) Extend(until time.Time) error { return g.extend(until) }

// Switch continues under another grant, at a tick above the last one used, so
// that IDs keep increasing. Calls in progress end under one of the two grants.
// No call takes a slot of the old grant after Switch has returned.
//
// After Seal, the error is ErrSealed. A grant that NewGenerator would refuse is
// an error too, and the current one stays in use.
func (g *GeneratorOf[I]) Switch(next Grant) error { return g.switchTo(next) }

// Seal ends the generator: no slot is taken after Seal has returned. A call
// that took one before may still return it.
//
// The result is the exclusive end of the times used under the current grant and
// earlier ones, or the grant's From if that is later. The next holder of the
// node ID must not begin before it. It is the zero time if a generator with a
// static grant was never called. Calling Seal again changes nothing and returns
// the same time.
func (g *GeneratorOf[I]) Seal() (until time.Time) { return g.seal() }

// Used returns the exclusive end of the times used so far, under any grant, or
// the zero time if no ID was made. It may not yet include the ID of a call in
// progress. It never goes back.
func (g *GeneratorOf[I]) Used() time.Time { return g.used() }

// wantAll makes r a request for n IDs, or returns an error if n is invalid.
func (c *core) wantAll(r *request, kind requestKind, n int) error {
	if n < 1 {
		return fmt.Errorf("firn: a batch of %d IDs is not possible: ask for at least 1", n)
	}
	r.kind, r.want, r.from = kind, uint64(n), math.MaxUint64
	return c.tooLargeError(c.term.Load(), r.want)
}

// batchAt returns the batch of n slots that were taken.
func (g *GeneratorOf[I]) batchAt(t *term, slot, n uint64) BatchOf[I] {
	g.batches.Add(1)
	return newBatch[I](&t.composer, slot, int(n))
}

// put writes the ID of a slot of a term, with its random bits, to its
// destination: copying a 128-bit ID costs more than making it. It is not a
// method of I, because generic code calls methods through a table.
func put[I AnyID](id *I, t *term, slot uint64) {
	switch id := any(id).(type) {
	case *ID:
		*id = t.id(slot)
	case *ID128:
		t.put128(id, slot)
	}
}

// id is put for 64-bit IDs.
func (t *term) id(slot uint64) ID {
	id := ID(t.composer.compose64(slot))
	if r := t.composer.random.lo; r != 0 {
		id |= ID(rand.Uint64() & r)
	}
	return id
}

// put128 is put for 128-bit IDs.
func (t *term) put128(id *ID128, slot uint64) {
	w, r := t.composer.compose128(slot), &t.composer.random
	if r.lo != 0 {
		w.lo |= rand.Uint64() & r.lo
	}
	if r.hi != 0 {
		w.hi |= rand.Uint64() & r.hi
	}
	id.put(w)
}
