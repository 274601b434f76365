package firn

import (
	"fmt"
	"time"
)

// A Grant is the exclusive right to make IDs with a node ID for the times in
// [From, Until), which is called a window. It is plain data.
//
// A zero From means that it is unknown when the node ID was used before; see
// StaticGrant. A zero Until means no end. A generator rounds From up to a tick
// and Until down.
type Grant struct {
	Node  uint64    // 0 to the layout's MaxNode
	From  time.Time // inclusive
	Until time.Time // exclusive
}

// StaticGrant returns the grant of a node ID that the caller keeps unique, for
// example by configuration. It has no time limits.
//
// A generator with a static grant starts MaxAhead and one tick after a
// reference time: the start of the process for the first such generator, and
// the time when it was made for a later one. So TryNext can succeed from the
// second tick of a process on, and a process that restarts immediately repeats
// no ID. IDs can repeat if
//   - the previous process, or generator, with the node ID still made IDs after
//     the reference, or had a larger MaxAhead; or
//   - the clock was set back since.
//
// Only a node ID held through a store is safe from that. With Options.Now, in a
// synctest bubble and after Switch, the reference is the clock at the first
// call.
//
// A batch under a static grant spans at most one minute, or what MaxAhead
// allows at once if that is more, because the grant has no end to bound it. A
// larger batch fails with ErrBatchTooLarge. Reservations run ahead of the time
// that MaxAhead allows by the same span at most. A restarted process does not
// know of reservations, so do not release a reserved batch from the process
// before its hold has ended.
func StaticGrant(node uint64) Grant { return Grant{Node: node} }

// Extend moves the end of the current grant to until; the zero time means no
// end. A time before the current end is an error and changes nothing. After
// Seal, the error is ErrSealed.
func (g *GeneratorOf[I]) Extend(until time.Time) error { return g.extend(until) }

func (c *core) extend(until time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sealed {
		return ErrSealed
	}
	t := c.term.Load()
	limit := c.limitOf(until)
	if limit < t.limit.Load() {
		end, _ := c.layout.timeOf(t.limit.Load() >> c.layout.seqBits)
		return fmt.Errorf("firn: extend the grant of node %d: %s is before its current end, %s, and a window never shrinks",
			t.grant.Node, formatTime(until), formatTime(end))
	}
	t.limit.Store(limit)
	return nil
}

// Switch continues under another grant, at a tick above the last one used, so
// that IDs keep increasing. Calls in progress end under one of the two grants.
// No call takes a slot of the old grant after Switch has returned.
//
// After Seal, the error is ErrSealed. A grant that NewGenerator would refuse is
// an error too, and the current one stays in use.
func (g *GeneratorOf[I]) Switch(next Grant) error { return g.switchTo(next) }

func (c *core) switchTo(g Grant) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sealed {
		return ErrSealed
	}
	old := c.term.Load()
	t, err := c.newTerm(g) // before the old term is sealed, to detect an invalid g
	if err != nil {
		return err
	}
	slot, used := c.sealTerm(old)
	if used {
		c.floor = c.roundUpToTick(slot)
	}
	t.floor = c.floor
	t.setFirst(max(t.first, c.floor))
	if r := old.reserved.Load(); r != nil && r.covers(old.usedEnd(slot)) {
		t.reserved.Store(&reservation{from: r.from, to: c.floor, now: r.now})
	}
	c.retired = append(c.retired, old)
	c.countRetired()
	c.term.Store(t)
	c.announceChange()
	return nil
}

// Seal ends the generator: no slot is taken after Seal has returned. A call
// that took one before may still return it.
//
// The result is the exclusive end of the times used under the current grant and
// earlier ones, or the grant's From if that is later. The next holder of the
// node ID must not begin before it. It is the zero time if a generator with a
// static grant was never called. Calling Seal again changes nothing and returns
// the same time.
func (g *GeneratorOf[I]) Seal() (until time.Time) { return g.seal() }

func (c *core) seal() (until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = true
	t := c.term.Load()
	slot, used := c.sealTerm(t)
	c.announceChange()
	if used {
		c.floor = c.roundUpToTick(slot)
	}
	until = t.grant.From
	if c.floor > 0 {
		if end, _ := c.layout.timeOf(c.floor >> c.layout.seqBits); end.After(until) {
			until = end
		}
	}
	return until
}

// Used returns the exclusive end of the times used so far, under any grant, or
// the zero time if no ID was made. It may not yet include the ID of a call in
// progress. It never goes back.
func (g *GeneratorOf[I]) Used() time.Time { return g.used() }

func (c *core) used() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	slot, used := c.term.Load().end()
	if slot = c.roundUpToTick(slot); !used {
		slot = c.floor
	}
	if slot == 0 {
		return time.Time{}
	}
	until, _ := c.layout.timeOf(slot >> c.layout.seqBits)
	return until
}

// sealTerm marks the word that calls swap, so no swap can succeed afterwards.
func (c *core) sealTerm(t *term) (slot uint64, used bool) {
	t.word.Or(sealedBit)
	return t.end()
}
