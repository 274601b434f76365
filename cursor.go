package firn

import (
	"context"

	"github.com/firnid/firn/internal/freshness"
)

// A Cursor makes 64-bit IDs for one goroutine that needs many. It shares
// nothing with other goroutines that do the same: it leases slots of its
// generator in blocks, and hands them out one by one.
//
// Like those of the generator, its IDs are unique, lie within the grant, lead
// the clock by no more than MaxAhead and, if the layout is Ordered, strictly
// increase. Only the order between callers is weaker: an ID can be lower than
// one that another caller got up to 50 µs earlier, or half a tick if that is
// less. No block is used for longer. After Seal or Switch has returned, no slot
// of the old grant is handed out.
//
// When a block's time has ended, its remaining slots are lost and leave a gap
// in the sequence; Stats counts the IDs of a block as made when it is leased.
// Blocks begin with one ID, grow while they are used up and shrink when they
// are not, so a Cursor that is rarely called loses little.
//
// With a clock set in Options.Now, or in a synctest bubble, a block is a single
// ID, and a Cursor makes the same IDs as its generator.
//
// A Cursor must be made by Generator.Cursor, and only one goroutine may use it
// at a time. It need not be closed.
type Cursor struct{ lease }

// Cursor returns a new Cursor of g. It takes no slot yet.
func (g *Generator) Cursor() *Cursor {
	return &Cursor{lease{core: &g.core, term: g.term.Load(), size: 1}}
}

// TryNext is like Generator.TryNext.
func (c *Cursor) TryNext() (id ID, err error) {
	slot, ok := c.quick()
	if !ok {
		if slot, err = c.renew(); err != nil {
			return 0, err
		}
	}
	return c.term.id(slot), nil
}

// Next is like Generator.Next.
func (c *Cursor) Next(ctx context.Context) (id ID, err error) {
	needContext(ctx)
	slot, ok := c.quick()
	if !ok {
		if slot, err = c.wait(ctx); err != nil {
			return 0, err
		}
	}
	return c.term.id(slot), nil
}

// maxLease is the maximum number of slots in a block. Leasing a block under
// contention costs some tens of nanoseconds, so larger blocks would save less
// than a nanosecond per ID.
const maxLease = 128

// A lease is a block of slots that belong to one goroutine.
//
// The slots [next, end) were taken from the term's word together, while a
// reading of the clock was fresh, and below the end that it allowed. So what
// term.quick guarantees for one slot holds for each of them as long as the same
// reading is fresh by the same test. They belong to the owner alone, so handing
// one out needs no atomic operation.
type lease struct {
	core *core
	term *term // the term of the slots
	next uint64
	end  uint64
	read freshness.Reading
	size uint64 // of the next block

	_ apart // leases of other goroutines may be next to it in memory
}

// quick returns the next slot of the block if it may still be used.
func (l *lease) quick() (slot uint64, ok bool) {
	if l.read.Fresh(freshness.Cycles()) && l.next < l.end && !l.term.ended.Load() {
		slot = l.next
		l.next++
		return slot, true
	}
	return 0, false
}

// renew returns a slot if quick has none.
func (l *lease) renew() (slot uint64, err error) {
	w := &l.core.watch
	if l.read.FreshBy(w) && l.next < l.end && !l.term.ended.Load() {
		slot = l.next
		l.next++
		return slot, nil
	}
	switch {
	case l.next < l.end: // slots were left over
		l.size = max(l.size/2, 1)
	case l.end > 0:
		l.size = min(2*l.size, maxLease)
	}
	// The slots that were left must not come back when the counter does.
	l.next, l.end = 0, 0
	l.term = l.core.term.Load()
	var end uint64
	if l.read, end = l.term.allowed.Read(w); end > 0 {
		if slot, n, ok := l.term.takeSomeBelow(l.size, end); ok {
			l.next, l.end = slot+1, slot+n
			return slot, nil
		}
	}
	l.term, slot, _, err = l.core.take(1)
	return slot, err
}

// wait is renew for a call that may wait.
func (l *lease) wait(ctx context.Context) (slot uint64, err error) {
	if !l.core.line.busy() {
		if slot, err = l.renew(); err == nil {
			return slot, nil
		}
	}
	t, slot, _, err := l.core.takeInLine(ctx, waiter{want: 1}, err)
	if err != nil {
		return 0, err
	}
	l.term = t
	l.next, l.end = 0, 0
	return slot, nil
}
