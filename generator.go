package firn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// A Generator makes 64-bit IDs for the node of its Grant.
//
// It is safe for use by many goroutines at once: making an ID that is free
// takes no lock, and nothing spins or holds a lock while it waits. Its IDs
// strictly increase, whatever the clock does: a call that begins after another
// has returned gets a higher ID, where the layout is Ordered.
//
// A clock or a context that panics, or ends the goroutine, ends one call, which
// takes nothing (Fill: nothing more); the generator works on for all others. A
// nil context panics at once, also where no wait is needed.
//
// A Generator must be made by NewGenerator and must not be copied.
type Generator struct{ core }

// NewGenerator makes a generator for IDs of layout. It does not read the clock.
//
// The error says what is wrong with a layout that is not of 64 bits or that
// cannot be generated, a node ID that does not fit, or an empty grant.
func NewGenerator(layout Layout, grant Grant, o *Options) (*Generator, error) {
	g := new(Generator)
	if err := g.init(layout, grant, o, 64, "NewGenerator128"); err != nil {
		return nil, err
	}
	return g, nil
}

// TryNext makes the next ID, without ever waiting. Where none is free, or a
// NextBatch has its turn, the error is a *WaitError (which matches
// ErrExhausted); where the clock went back beyond MaxAhead or is before the
// epoch, it is a *ClockError. ErrGrantOver, ErrTimeOver and ErrSealed mean that
// waiting does not help. A refused call changes nothing.
func (g *Generator) TryNext() (id ID, err error) { return tryNext[ID](&g.core) }

// Next makes the next ID. Where TryNext has a *WaitError, Next waits; so it
// does where the clock went back by up to MaxLag. The context is looked at only
// when there is something to wait for; a call that it ends has taken nothing,
// and its error matches both the context's and what it was waiting for. Calls
// that wait are served in the order in which they came.
func (g *Generator) Next(ctx context.Context) (id ID, err error) {
	return next[ID](ctx, &g.core)
}

// Fill fills dst with the next len(dst) IDs, in order. It takes them in pieces
// as they become free, across waits and changes of the grant, so other calls
// can come in between. On an error the contents of dst are not to be used; the
// IDs taken for it are lost.
func (g *Generator) Fill(ctx context.Context, dst []ID) error { return fill(ctx, &g.core, dst) }

// Reserve takes n consecutive slots at once, whatever MaxAhead says, and
// returns how long the caller must hold the batch back before using it: until
// its last ID is no more than MaxAhead ahead of the clock. It never waits, nor
// does it look at how far the clock went back. It takes nothing where the grant
// or the layout ends before the batch (ErrGrantOver, ErrTimeOver), while a
// NextBatch has its turn (*WaitError), and beyond what a static grant allows
// (ErrBatchTooLarge, or *WaitError or *ClockError for as long as that lasts;
// see StaticGrant).
//
// The hold is Hazelcast's: whole ticks from the clock's tick to the end of the
// batch, exclusive, less MaxAhead.
func (g *Generator) Reserve(n int) (Batch, time.Duration, error) { return reserve[ID](&g.core, n) }

// NextBatch makes the next n IDs, n ≥ 1, at consecutive slots. It waits in line
// as Next does, and takes the batch when its last ID is no more than MaxAhead
// ahead of the clock, so a call that its context ends has taken nothing. While
// it is the first of the line, no other call takes an ID.
//
// A batch that is too large for MaxAhead takes the time that it spans, less
// MaxAhead: its first IDs are as old as that then, though not older than the
// call. The error is ErrBatchTooLarge, at once, if the context's deadline comes
// earlier, or if the batch spans more than a static grant allows (see
// StaticGrant). Fill makes any number of IDs and lets other calls in between.
func (g *Generator) NextBatch(ctx context.Context, n int) (Batch, error) {
	return nextBatch[ID](ctx, &g.core, n)
}

// TryNextBatch is NextBatch without ever waiting: where that waits, it has a
// *WaitError or a *ClockError, and has taken nothing.
func (g *Generator) TryNextBatch(n int) (Batch, error) { return tryNextBatch[ID](&g.core, n) }

// A Generator128 is a Generator of 128-bit IDs. What is said there holds here.
type Generator128 struct{ core }

// NewGenerator128 is NewGenerator for layouts of 128 bits.
func NewGenerator128(layout Layout, grant Grant, o *Options) (*Generator128, error) {
	g := new(Generator128)
	if err := g.init(layout, grant, o, 128, "NewGenerator"); err != nil {
		return nil, err
	}
	return g, nil
}

// TryNext is Generator.TryNext.
func (g *Generator128) TryNext() (id ID128, err error) { return tryNext[ID128](&g.core) }

// Next is Generator.Next.
func (g *Generator128) Next(ctx context.Context) (id ID128, err error) {
	return next[ID128](ctx, &g.core)
}

// Fill is Generator.Fill.
func (g *Generator128) Fill(ctx context.Context, dst []ID128) error { return fill(ctx, &g.core, dst) }

// Reserve is Generator.Reserve.
func (g *Generator128) Reserve(n int) (Batch128, time.Duration, error) {
	return reserve[ID128](&g.core, n)
}

// NextBatch is Generator.NextBatch.
func (g *Generator128) NextBatch(ctx context.Context, n int) (Batch128, error) {
	return nextBatch[ID128](ctx, &g.core, n)
}

// TryNextBatch is Generator.TryNextBatch.
func (g *Generator128) TryNextBatch(n int) (Batch128, error) { return tryNextBatch[ID128](&g.core, n) }

// What follows is written once for both widths. The types stay two, so that go
// doc shows their methods with the IDs that they make: see
// docs/decisions/generator.md.

// tryNext is TryNext.
func tryNext[I AnyID[I]](c *core) (id I, err error) {
	t := c.term.Load()
	slot, ok := t.quick()
	if !ok {
		if t, slot, err = c.takeOne(); err != nil {
			return id, err
		}
	}
	put(&id, t, slot)
	return id, nil
}

// next is Next.
func next[I AnyID[I]](ctx context.Context, c *core) (id I, err error) {
	needContext(ctx)
	t := c.term.Load()
	slot, ok := t.quick()
	if !ok {
		if t, slot, err = c.waitOne(ctx); err != nil {
			return id, err
		}
	}
	put(&id, t, slot)
	return id, nil
}

// put writes the ID of a slot of a term, with its random bits, where it is to
// be: to copy one of 128 bits costs more than to make it. A method of I would
// be called by a table.
func put[I AnyID[I]](id *I, t *term, slot uint64) {
	switch id := any(id).(type) {
	case *ID:
		*id = t.id(slot)
	case *ID128:
		t.put128(id, slot)
	}
}

// id is put for IDs of 64 bits.
func (t *term) id(slot uint64) ID {
	id := ID(t.composer.low(slot))
	if r := t.composer.random.lo; r != 0 {
		id |= ID(rand.Uint64() & r)
	}
	return id
}

// put128 is put for IDs of 128 bits.
func (t *term) put128(id *ID128, slot uint64) {
	w, r := t.composer.wide(slot), &t.composer.random
	if r.lo != 0 {
		w.lo |= rand.Uint64() & r.lo
	}
	if r.hi != 0 {
		w.hi |= rand.Uint64() & r.hi
	}
	id.put(w)
}

// fill fills dst with IDs, in pieces as they become free.
func fill[I AnyID[I]](ctx context.Context, c *core, dst []I) error {
	needContext(ctx)
	for len(dst) > 0 {
		var t *term
		var slot, n uint64
		var err error
		busy := c.line.busy()
		if !busy {
			t, slot, n, err = c.takeUpTo(uint64(len(dst)))
		}
		if busy || err != nil {
			t, slot, n, err = c.takeInLine(ctx, waiter{want: uint64(len(dst))}, err)
		}
		if err != nil {
			return err
		}
		c.batches.Add(1)
		newBatch[I](&t.composer, slot, int(n)).write(dst[:n])
		dst = dst[n:]
	}
	return nil
}

// waiterOf is the waiter of a batch of n IDs, or what is wrong with n.
func (c *core) waiterOf(n int) (w waiter, err error) {
	if n < 1 {
		return w, fmt.Errorf("firn: a batch of %d IDs: it takes at least 1", n)
	}
	w = waiter{want: uint64(n), batch: true, from: math.MaxUint64}
	return w, c.tooLarge(c.term.Load(), w.want)
}

// made is the batch of slots that were taken, if they were.
func made[I AnyID[I]](c *core, t *term, slot uint64, n int, err error) (BatchOf[I], error) {
	if err != nil {
		return BatchOf[I]{}, err
	}
	c.batches.Add(1)
	return newBatch[I](&t.composer, slot, n), nil
}

// reserve is Reserve.
func reserve[I AnyID[I]](c *core, n int) (b BatchOf[I], hold time.Duration, err error) {
	if _, err = c.waiterOf(n); err != nil {
		return b, 0, err
	}
	t, slot, hold, err := c.takeAll(uint64(n))
	b, err = made[I](c, t, slot, n, err)
	return b, hold, err
}

// nextBatch is NextBatch: it waits until n slots may be used, all of them, and
// takes them then.
func nextBatch[I AnyID[I]](ctx context.Context, c *core, n int) (b BatchOf[I], err error) {
	needContext(ctx)
	w, err := c.waiterOf(n)
	if err != nil {
		return b, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		// An idle generator takes this long.
		own := max(0, c.spanOf(w.want)-c.layout.unit-c.maxAhead)
		if left := time.Until(deadline); own > 0 && left < own {
			return b, fmt.Errorf("%w: %d IDs take %v, and the deadline is in %v: %w", ErrBatchTooLarge, n, own, max(0, left), context.DeadlineExceeded)
		}
	}
	var t *term
	var slot uint64
	busy := c.line.busy()
	if !busy {
		t, slot, err = c.takeBatch(&w)
	}
	if busy || err != nil {
		t, slot, _, err = c.takeInLine(ctx, w, err)
	}
	return made[I](c, t, slot, n, err)
}

// tryNextBatch is TryNextBatch.
func tryNextBatch[I AnyID[I]](c *core, n int) (b BatchOf[I], err error) {
	w, err := c.waiterOf(n)
	if err != nil {
		return b, err
	}
	if c.line.busy() {
		return b, c.notYourTurn(c.line.want.Load(), w.want) // others were here before
	}
	t, slot, err := c.takeBatch(&w)
	return made[I](c, t, slot, n, err)
}
