package firn

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/internal/freshness"
)

// sealedBit is the bit of a term's word that ends the term.
const sealedBit = 1 << 63

// A term is a generator's life under one grant: its node ID and its own count
// of slots. A slot is checked against the limit of the term from which it was
// taken, even if the generator has another term by then.
type term struct {
	grant    Grant
	composer composer

	// first is the first slot that may be used: the start of the grant, or
	// later because of slots used in earlier terms. A static term learns its
	// first slot only at the first call (see staticFirst); it is never below
	// first.
	first  uint64
	static bool

	// initialWord is the word at the start of the term: first, or 0 if the term
	// is static.
	initialWord uint64

	// floor is the first slot above all ticks that earlier terms used.
	floor uint64

	// staticFirst is the first slot of a static term, once it has one.
	staticFirst atomic.Uint64

	// allowed is what takeFresh may take. All calls read it, and a call that
	// has read the clock writes it.
	allowed freshness.Allowance

	_ cacheLinePad

	// word is the next slot in 63 bits, with sealedBit on top. Zero in a
	// static term means that it has not started. The word only grows, and never
	// beyond limit.
	word atomic.Uint64

	_ cacheLinePad // so that writing the word takes nothing else from other processors

	// limit is the slot at which the grant or the layout ends. It only grows.
	limit atomic.Uint64

	// reference is when earlier holders of a static node ID had made their last
	// ID; see core.referenceReading.
	reference time.Time

	// reserved is the last reservation that ran ahead of the clock.
	reserved atomic.Pointer[reservation]

	// skipped counts slots that the clock passed unused, so the number of IDs
	// made is word - initialWord - skipped. A call that moves the word over
	// unused slots adds 1 to skipsBegun before and to skipsEnded after. A
	// reader of both can then tell whether skipped belongs to the word that it
	// has read.
	skipped                atomic.Uint64
	skipsBegun, skipsEnded atomic.Uint64
}

// cacheLinePad is two cache lines: processors fetch them in pairs.
type cacheLinePad [128]byte

// A reservation took the slots [from, to) when the clock read now. The word
// after any of these slots lies in (from, to].
type reservation struct {
	from, to uint64
	now      reading
}

// covers reports whether the reservation took the slot before word.
func (r *reservation) covers(word uint64) bool { return r.from < word && word <= r.to }

// usedEnd returns the end of the slots that the generator has used, in this
// term and earlier ones, when the term's word is this, or 0 if it has used
// none.
func (t *term) usedEnd(word uint64) uint64 {
	if word &^= sealedBit; word > max(t.first, t.staticFirst.Load()) {
		return word
	}
	return t.floor
}

// setFirst sets the first slot and, unless the term is static, the word.
func (t *term) setFirst(first uint64) {
	t.first = first
	if !t.static {
		t.initialWord = first
		t.word.Store(first)
	}
}

// takeFresh takes the next slots, up to want, if a reading of the clock that is
// still fresh allows them; otherwise n is 0. cycles is freshness.Cycles(). It
// is take without reading the clock, and gives the same guarantees, even if the
// counter that measures freshness is wrong:
//
// The end of what is allowed was computed by take, from a reading of the clock
// and from the term's limit, after the word had reached that clock. So if the
// word is at a slot below this end, the slot is in the grant, no further ahead
// of that reading than MaxAhead allows, and not behind it. The swap takes the
// slot only if the word is still there, so slots are unique, and a refused call
// leaves the word unchanged, however many callers there are. A sealed word is
// above every end, because its top bit is set.
//
// It swaps instead of adding, though an addition would cost less under
// contention: see docs/decisions/generator.md.
func (t *term) takeFresh(cycles, want uint64) (slot, n uint64) {
	return t.takeBelow(want, t.allowed.End(cycles))
}

// takeBelow takes up to want slots if the next one lies below end.
func (t *term) takeBelow(want, end uint64) (slot, n uint64) {
	for {
		v := t.word.Load()
		if v >= end {
			return 0, 0
		}
		n := min(want, end-v)
		if t.word.CompareAndSwap(v, v+n) {
			return v, n
		}
	}
}

// swap moves the word from v over the slots [s, s+n). It reports whether the
// word was still v.
func (t *term) swap(v, s, n uint64) bool {
	if s == v {
		return t.word.CompareAndSwap(v, s+n)
	}
	t.skipsBegun.Add(1)
	ok := t.word.CompareAndSwap(v, s+n)
	if ok {
		t.skipped.Add(s - v)
	}
	t.skipsEnded.Add(1)
	return ok
}

// made returns the number of slots taken. ok is false while a call moves the
// word over unused slots, because the number is unknown then.
func (t *term) made() (n uint64, ok bool) {
	done := t.skipsEnded.Load()
	v, skipped := t.word.Load()&^sealedBit, t.skipped.Load()
	return v - t.initialWord - skipped, t.skipsBegun.Load() == done
}

// seal marks the word that calls swap, so no swap can succeed afterwards. It
// returns the end of the slots that the generator has used.
func (t *term) seal() (end uint64) { return t.usedEnd(t.word.Or(sealedBit)) }

// newTerm returns the term of a grant.
func (c *core) newTerm(g Grant) (*term, error) {
	if most := c.layout.MaxNode(); g.Node > most {
		return nil, c.layout.rangeError("node", g.Node, most)
	}
	if !g.From.IsZero() && !g.Until.IsZero() && !g.From.Before(g.Until) {
		return nil, fmt.Errorf("firn: the grant of node %d is empty: it begins at %s and ends at %s",
			g.Node, formatTime(g.From), formatTime(g.Until))
	}
	t := &term{grant: g, composer: *newComposer(&c.layout, g.Node), static: g.From.IsZero()}
	first := uint64(0)
	if !t.static {
		tick, rest, where := c.layout.tickAt(g.From)
		switch {
		case where < 0:
			tick = 0
		case where > 0:
			tick = c.endTick
		case rest > 0:
			tick++
		}
		first = min(tick, c.endTick) << c.layout.seqBits
		if first == 0 && t.composer.base.isZero() {
			first = 1 // slot 0 would give the ID 0, which means no ID
		}
	}
	t.setFirst(first)
	t.limit.Store(c.limitOf(g.Until))
	return t, nil
}

// limitOf returns the exclusive slot at which a grant with this end ends.
func (c *core) limitOf(until time.Time) uint64 {
	tick := c.endTick
	if !until.IsZero() {
		switch n, _, where := c.layout.tickAt(until); {
		case where < 0:
			tick = 0
		case where == 0:
			tick = min(tick, n)
		}
	}
	return tick << c.layout.seqBits
}

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
	end := old.seal()
	t.floor = c.roundUpToTick(end)
	t.setFirst(max(t.first, t.floor))
	if r := old.reserved.Load(); r != nil && r.covers(end) {
		t.reserved.Store(&reservation{from: r.from, to: t.floor, now: r.now})
	}
	c.retired = append(c.retired, old)
	c.countRetired()
	c.term.Store(t)
	c.announceChange()
	return nil
}

func (c *core) announceChange() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// changes returns a channel that is closed at the next change of the grant. A
// call that may wait gets it before it tries, so that no change is missed
// between the refusal and the wait.
func (c *core) changes() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *core) seal() (until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = true
	t := c.term.Load()
	end := c.roundUpToTick(t.seal())
	c.announceChange()
	until = t.grant.From
	if end > 0 {
		if used, _ := c.layout.timeOf(end >> c.layout.seqBits); used.After(until) {
			until = used
		}
	}
	return until
}

func (c *core) used() time.Time {
	t := c.term.Load()
	end := c.roundUpToTick(t.usedEnd(t.word.Load()))
	if end == 0 {
		return time.Time{}
	}
	until, _ := c.layout.timeOf(end >> c.layout.seqBits)
	return until
}
