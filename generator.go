package firn

import (
	"context"
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
// takes nothing (Fill: nothing more); the generator works on for all others. A nil
// context panics at once, also where no wait is needed.
//
// A Generator must be made by NewGenerator and must not be copied.
type Generator struct{ core }

// NewGenerator makes a generator for IDs of layout. It does not read the clock.
//
// The error says what is wrong with a layout that is not of 64 bits or that
// cannot be generated, a node number that does not fit, or an empty grant.
func NewGenerator(layout Layout, grant Grant, o *Options) (*Generator, error) {
	g := new(Generator)
	if err := g.init(layout, grant, o, 64, "NewGenerator128"); err != nil {
		return nil, err
	}
	return g, nil
}

// TryNext makes the next ID, without ever waiting. Where none is free, or a
// NextBatch has its turn, the error is a *WaitError (which matches ErrExhausted);
// where the clock went back beyond MaxAhead or is before the epoch, it is a
// *ClockError. ErrGrantOver, ErrTimeOver and ErrSealed mean that waiting does not
// help. A refused call changes nothing.
func (g *Generator) TryNext() (ID, error) {
	t := g.term.Load()
	if slot, ok := t.quick(); ok {
		return t.id(slot), nil
	}
	return g.tryNext()
}

// tryNext is TryNext by a look at the clock.
func (g *Generator) tryNext() (ID, error) {
	t, slot, err := g.takeOne()
	if err != nil {
		return 0, err
	}
	return t.id(slot), nil
}

// Next makes the next ID. Where TryNext has a *WaitError, Next waits; so it
// does where the clock went back by up to MaxLag. The context is looked at only
// when there is something to wait for; a call that it ends has taken nothing,
// and its error matches both the context's and what it was waiting for. Calls that
// wait are served in the order in which they came.
func (g *Generator) Next(ctx context.Context) (ID, error) {
	needContext(ctx)
	t := g.term.Load()
	if slot, ok := t.quick(); ok {
		return t.id(slot), nil
	}
	t, slot, err := g.waitOne(ctx)
	if err != nil {
		return 0, err
	}
	return t.id(slot), nil
}

// Fill fills dst with the next len(dst) IDs, in order. It takes them in pieces
// as they become free, across waits and changes of the grant, so other calls
// can come in between. On an error the contents of dst are not to be used; the
// IDs taken for it are lost.
func (g *Generator) Fill(ctx context.Context, dst []ID) error {
	return fill(ctx, &g.core, dst)
}

// Reserve takes n consecutive slots at once, whatever MaxAhead says, and returns
// how long the caller must hold the batch back before using it: until its last
// ID is no more than MaxAhead ahead of the clock. It never waits, nor does it
// look at how far the clock went back. It takes nothing where the grant or the
// layout ends before the batch (ErrGrantOver, ErrTimeOver), while a NextBatch has
// its turn (*WaitError), and beyond what a static grant allows (ErrBatchTooLarge,
// or *WaitError or *ClockError for as long as that lasts; see StaticGrant).
//
// The hold is Hazelcast's: whole ticks from the clock's tick to the end of the
// batch, exclusive, less MaxAhead.
func (g *Generator) Reserve(n int) (Batch, time.Duration, error) {
	t, slot, hold, err := g.reserve(n)
	if err != nil {
		return Batch{}, 0, err
	}
	return newBatch[ID](&t.composer, slot, n), hold, nil
}

// NextBatch makes the next n IDs, n ≥ 1, at consecutive slots. It waits in line
// as Next does, and takes the batch when its last ID is no more than MaxAhead
// ahead of the clock, so a call that its context ends has taken nothing. While it
// is the first of the line, no other call takes an ID.
//
// A batch that is too large for MaxAhead takes the time that it spans, less
// MaxAhead: its first IDs are as old as that then, though not older than the call.
// The error is ErrBatchTooLarge, at once, if the context's deadline comes earlier,
// or if the batch spans more than a static grant allows (see StaticGrant). Fill
// makes any number of IDs and lets other calls in between.
func (g *Generator) NextBatch(ctx context.Context, n int) (Batch, error) {
	t, slot, err := g.next(ctx, n)
	if err != nil {
		return Batch{}, err
	}
	return newBatch[ID](&t.composer, slot, n), nil
}

// TryNextBatch is NextBatch without ever waiting: where that waits, it has a
// *WaitError or a *ClockError, and has taken nothing.
func (g *Generator) TryNextBatch(n int) (Batch, error) {
	t, slot, err := g.tryNextBatch(n)
	if err != nil {
		return Batch{}, err
	}
	return newBatch[ID](&t.composer, slot, n), nil
}

// id is the ID of a slot of this term.
func (t *term) id(slot uint64) ID {
	id := t.composer.low(slot)
	if r := t.composer.random.lo; r != 0 {
		id |= rand.Uint64() & r
	}
	return ID(id)
}
