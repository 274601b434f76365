package firn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/internal/freshness"
)

// core is the part of a GeneratorOf that hands out slots, whatever their IDs
// are.
//
// Every call loads the current term, loads the term's word, reads the clock and
// then swaps the word, in this order. So a goroutine that was suspended in
// between can only fail the swap, never go back. Uniqueness depends on the swap
// alone; the clock pulls the word forward and limits how far it may go.
//
// There are two ways to take slots. term.takeFresh takes them without reading
// the clock, which is 45 of the 70 ns of an ID, if the processor's counter
// shows that the last reading is still fresh. take reads the clock, and decides
// what takeFresh may take. docs/decisions/generator.md has the reasons.
type core struct {
	layout   Layout
	now      func() time.Time
	tracker  freshness.Tracker
	maxAhead time.Duration
	maxLag   time.Duration
	endTick  uint64 // exclusive: the first tick that the layout, or the word, cannot hold

	// maxAhead in whole ticks and nanoseconds
	aheadTicks, aheadRest uint64

	maxStaticBatch uint64 // maximum number of slots in a batch under a static grant

	term atomic.Pointer[term]

	_ cacheLinePad // every call reads the fields above, and some write those below

	batches atomic.Uint64
	waits   waits
	line    line

	mu       sync.Mutex    // guards the fields below and changes of term
	sealed   bool          // there will be no other term
	changed  chan struct{} // closed and replaced by Switch and Seal
	earlier  uint64        // number of IDs made in earlier terms
	retired  []*term       // earlier terms whose IDs are not yet counted in earlier
	reported uint64        // number of IDs at the last call of Stats
}

// init initializes c.
func (c *core) init(layout Layout, grant Grant, o *Options) error {
	if o == nil {
		o = &Options{MaxAhead: layout.DefaultMaxAhead()}
		if grant.From.IsZero() {
			o.MaxAhead = staticAhead
		}
	}
	if o.MaxAhead < 0 || o.MaxLag < 0 {
		return fmt.Errorf("firn: MaxAhead is %v and MaxLag %v: neither can be negative", o.MaxAhead, o.MaxLag)
	}
	endTick, err := layout.endTick()
	if err != nil {
		return err
	}
	c.layout, c.endTick = layout, endTick
	c.now = o.Now
	if c.now == nil {
		c.now = time.Now
		// Half a tick at most, so that an ID has the current tick or the one
		// before: its time is less than a tick and this span behind.
		c.tracker.Init(layout.unit / 2)
	}
	c.maxAhead, c.maxLag = o.MaxAhead, cmp.Or(o.MaxLag, defaultMaxLag)
	c.aheadTicks, c.aheadRest = uint64(c.maxAhead/layout.unit), uint64(c.maxAhead%layout.unit)
	c.maxStaticBatch = c.slotsOf(max(uint64(staticSpan/layout.unit), c.aheadTicks+1))
	c.changed = make(chan struct{})

	t, err := c.newTerm(grant)
	if err != nil {
		return err
	}
	if t.static && o.Now == nil {
		t.reference = newReference()
	}
	c.term.Store(t)
	return nil
}

// sealedForGood reports whether Seal was called. It waits for a Switch in
// progress.
func (c *core) sealedForGood() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sealed
}

// takeOrWait is take for a call that may wait: it takes its turn in line if
// other calls wait, or if no slot is free.
func (c *core) takeOrWait(ctx context.Context, r request) (t *term, slot, n uint64, err error) {
	busy := c.line.busy()
	if !busy {
		t, slot, n, err = c.take(&r)
	}
	if busy || err != nil {
		t, slot, n, err = c.takeInLine(ctx, r, err)
	}
	return t, slot, n, err
}

// take takes slots for r: at least one and up to r.want that may be used now,
// or all of them for a batch or a reservation. It takes none while a batch is
// first in line.
func (c *core) take(r *request) (t *term, slot, n uint64, err error) {
	for {
		var v view
		if err := c.loadView(&v); err != nil {
			return nil, 0, 0, err
		}
		slot, err := c.slotFor(&v, r)
		if batchEnd := c.line.batchEnd.Load(); err == nil && batchEnd > 0 {
			err = c.notYetError(&v, max(slot, batchEnd), r.minSlots())
		}
		if err != nil {
			if c.term.Load() != v.term {
				continue // refused by a term that has ended
			}
			return nil, 0, 0, err
		}
		n, end := r.want, min(v.limit, v.ahead)
		taken := false
		if r.kind == wantsReservation {
			taken = c.reserve(&v, r)
		} else {
			slot = c.evenStart(&v, slot, n)
			n = min(n, end-slot)
			taken = v.term.swap(v.word, slot, n)
		}
		if taken {
			if r.kind != wantsBatch { // its slots can lie behind the clock
				c.allow(&v, min(end, slot+n+freshness.MaxIDs))
			}
			return v.term, slot, n, nil
		}
	}
}

// evenStart returns where n slots begin that could begin at slot. If that is a
// new tick, it is a random slot among the tick's first 2^even, provided that
// the n slots end in the same tick; see ParseLayout.
func (c *core) evenStart(v *view, slot, n uint64) uint64 {
	if c.layout.even == 0 || slot&(1<<c.layout.seqBits-1) != 0 ||
		slot == v.word && v.word > max(v.term.first, v.term.staticFirst.Load()) {
		return slot
	}
	if skip := rand.Uint64N(1 << c.layout.even); n <= 1<<c.layout.seqBits-skip {
		return slot + skip
	}
	return slot
}

// allow allows the slots below end, in the term from which slots were taken, to
// the next calls without another reading.
func (c *core) allow(v *view, end uint64) {
	if c.tracker.On() && !c.line.busy() { // waiting calls come first
		c.tracker.Allow(&v.term.allowed, v.seen, end)
	}
}

// slotFor returns the slot at which the slots of r begin, or why r cannot have
// any yet. A batch gets all its slots or none.
//
// A batch larger than MaxAhead can end within MaxAhead only if its first slots
// are then behind the clock. None of them has a time before the call: r.from
// remembers the clock at its start.
//
// A reservation ignores MaxAhead. Under a static grant, which has no end, it
// runs ahead of what MaxAhead allows by no more than the span of one batch.
func (c *core) slotFor(v *view, r *request) (slot uint64, err error) {
	slot, need, ahead := v.slot, r.minSlots(), v.ahead
	switch {
	case r.kind == wantsBatch:
		r.from = min(r.from, c.clockSlot(v)) // lower if the clock went back
		slot = max(v.word, r.from)
		if err := c.tooLargeError(v.term, need); err != nil {
			return 0, err
		}
	case r.kind == wantsReservation && v.term.static:
		ahead += min(c.maxStaticBatch, 1<<63)
	case r.kind == wantsReservation:
		ahead = v.limit
	}
	switch {
	case slot >= v.limit || need > v.limit-slot:
		return slot, c.endError(v)
	case slot >= ahead || need > ahead-slot:
		return slot, c.notYetError(v, slot+need-1-(ahead-v.ahead), need)
	}
	return slot, nil
}

// maxAtOnce returns the maximum number of slots that MaxAhead allows from the
// beginning of the clock's tick, at the end of that tick.
func (c *core) maxAtOnce() uint64 {
	return c.slotsOf(c.aheadTick(reading{0, uint64(c.layout.unit) - 1}) + 1)
}

// slotsOf returns the number of slots in n ticks, or the greatest number.
func (c *core) slotsOf(n uint64) uint64 {
	if n > math.MaxUint64>>c.layout.seqBits {
		return math.MaxUint64
	}
	return n << c.layout.seqBits
}

// spanOf returns the time that n slots span.
func (c *core) spanOf(n uint64) time.Duration {
	ticks := (n-1)>>c.layout.seqBits + 1
	return durationOf(ticks, c.layout.unit)
}

// reserve takes the slots of a reservation, and reports whether no other call
// was faster. It notes them if they run ahead of the clock: before they are
// taken, so that no call takes the word for that of a clock that went back. It
// sets the hold by Hazelcast's formula: whole ticks from the clock's tick to the
// end of the slots, exclusive, minus MaxAhead.
func (c *core) reserve(v *view, r *request) bool {
	c.mu.Lock() // one reservation at a time, so that a note can be taken back
	defer c.mu.Unlock()
	before, end := v.term.reserved.Load(), v.slot+r.want
	if end > v.ahead {
		v.term.reserved.Store(&reservation{from: v.slot, to: end, now: v.now})
	}
	if !v.term.swap(v.word, v.slot, r.want) {
		v.term.reserved.Store(before)
		return false
	}
	r.hold = max(0, durationOf((end-c.clockSlot(v))>>c.layout.seqBits, c.layout.unit)-c.maxAhead)
	return true
}

// endError returns the reason why no slot at or above the limit is available.
func (c *core) endError(v *view) error {
	if v.limit == c.endTick<<c.layout.seqBits {
		return c.layout.timeOverError()
	}
	return ErrGrantOver
}

// notYetError returns the error for a slot that may not be used yet, the last
// one that a call for n IDs needs: how long that takes, and whether the reason
// is a clock that went back.
func (c *core) notYetError(v *view, slot, n uint64) error {
	wait := max(1, c.untilAllowed(slot>>c.layout.seqBits, v.now))
	back := time.Duration(0)
	reached := v.term.usedEnd(v.word)
	switch r := v.term.reserved.Load(); {
	case reached == 0:
		// No ID was made yet: the grant begins in the future.
		if _, ok := c.referenceReading(v); ok {
			// Or the clock went back since the reference.
			reached = v.word
			back = c.untilAllowed((reached-1)>>c.layout.seqBits, v.now)
		}
	case r != nil && r.covers(reached):
		// The last ID was reserved ahead of the clock.
		if v.now.before(r.now) {
			back = durationOf(r.now.tick-v.now.tick, c.layout.unit)
		}
	default:
		// The last ID's time was allowed when it was made.
		back = c.untilAllowed((reached-1)>>c.layout.seqBits, v.now)
	}
	if back <= 0 {
		return &WaitError{Wait: wait, n: n}
	}
	last, _ := c.layout.timeOf((reached - 1) >> c.layout.seqBits)
	return &ClockError{Now: c.timeOf(v.now), Last: last, Wait: wait, back: back}
}

// roundUpToTick returns the first slot of the next tick, or slot if it is the
// first of its tick.
func (c *core) roundUpToTick(slot uint64) uint64 {
	m := mask(c.layout.seqBits)
	return (slot + m) &^ m
}
