package firn

import (
	"context"
	"math/rand/v2"
	"time"
)

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

// TryNext makes the next ID, without ever waiting; see Generator.TryNext.
func (g *Generator128) TryNext() (id ID128, err error) {
	t := g.term.Load()
	if slot, ok := t.quick(); ok {
		t.put128(&id, slot)
		return id, nil
	}
	return g.tryNext()
}

// tryNext is TryNext by a look at the clock.
func (g *Generator128) tryNext() (ID128, error) {
	t, slot, err := g.takeOne()
	if err != nil {
		return ID128{}, err
	}
	return t.id128(slot), nil
}

// Next makes the next ID; see Generator.Next.
func (g *Generator128) Next(ctx context.Context) (id ID128, err error) {
	needContext(ctx)
	t := g.term.Load()
	if slot, ok := t.quick(); ok {
		t.put128(&id, slot)
		return id, nil
	}
	t, slot, err := g.waitOne(ctx)
	if err != nil {
		return ID128{}, err
	}
	t.put128(&id, slot)
	return id, nil
}

// Fill fills dst with the next len(dst) IDs; see Generator.Fill.
func (g *Generator128) Fill(ctx context.Context, dst []ID128) error {
	return fill(ctx, &g.core, dst)
}

// Reserve takes n consecutive slots at once; see Generator.Reserve.
func (g *Generator128) Reserve(n int) (Batch128, time.Duration, error) {
	t, slot, hold, err := g.reserve(n)
	if err != nil {
		return Batch128{}, 0, err
	}
	return newBatch[ID128](&t.composer, slot, n), hold, nil
}

// NextBatch makes the next n IDs; see Generator.NextBatch.
func (g *Generator128) NextBatch(ctx context.Context, n int) (Batch128, error) {
	t, slot, err := g.next(ctx, n)
	if err != nil {
		return Batch128{}, err
	}
	return newBatch[ID128](&t.composer, slot, n), nil
}

// TryNextBatch makes the next n IDs without ever waiting; see Generator.TryNextBatch.
func (g *Generator128) TryNextBatch(n int) (Batch128, error) {
	t, slot, err := g.tryNextBatch(n)
	if err != nil {
		return Batch128{}, err
	}
	return newBatch[ID128](&t.composer, slot, n), nil
}

// id128 is the ID of a slot of this term.
func (t *term) id128(slot uint64) (id ID128) {
	t.put128(&id, slot)
	return id
}

// put128 writes the ID of a slot of this term where it is to be: to copy it from
// its halves costs more than to make it.
func (t *term) put128(id *ID128, slot uint64) {
	w := t.composer.wide(slot)
	r := &t.composer.random
	if r.lo != 0 {
		w.lo |= rand.Uint64() & r.lo
	}
	if r.hi != 0 {
		w.hi |= rand.Uint64() & r.hi
	}
	id.put(w)
}
