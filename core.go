package firn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/internal/freshness"
)

// core is what Generator and Generator128 share: it hands out slots.
//
// Every call loads the current term, loads the term's word, reads the clock and
// then swaps the word, in this order, so that a goroutine that was asleep in
// between can only fail the swap, never go back. Uniqueness rests on the swap
// alone; the clock pulls the word forward and says how far it may go.
//
// While a reading of the clock is fresh, single IDs are taken without another
// one: see term.quick.
type core struct {
	layout   Layout
	clock    clock
	watch    freshness.Watch
	maxAhead time.Duration
	maxLag   time.Duration
	lastTick uint64 // exclusive: the first tick that the layout, or the word, cannot hold

	// maxAhead in whole ticks and nanoseconds
	aheadTicks, aheadRest uint64

	mostStatic uint64 // slots of a batch under a static grant

	term atomic.Pointer[term]

	_ apart // what stands above is read by every call, what follows is written by some

	batches atomic.Uint64
	waits   waits
	line    line

	mu       sync.Mutex    // guards what follows, and changes of term
	isSealed bool          // no term will follow
	changed  chan struct{} // closed, and replaced, by Switch and Seal
	floor    uint64        // the first slot above all ticks that earlier terms used
	before   uint64        // IDs made in earlier terms
	retired  []*term       // earlier terms whose IDs are not in before yet
	reported uint64        // IDs at the last Stats
}

// Options are the settings of a generator. A nil pointer means the defaults.
type Options struct {
	// Now is the clock; nil is the system's wall clock, which is read again when
	// the last reading is 50 µs old, or half a tick where that is less. A clock
	// given here is called every time, by many goroutines at once, and may go
	// wherever it likes: IDs stay unique.
	Now func() time.Time

	// MaxAhead is how far the time of IDs may run ahead of the clock in a burst.
	// It is taken literally, also in &Options{}: 0 means never ahead, so that
	// when a tick's sequence is used up, the next ID waits for the next tick.
	// With nil Options it is the layout's MaxAhead. It cannot be negative.
	MaxAhead time.Duration

	// MaxLag is how far the clock may go back, beyond MaxAhead, so that Next
	// still waits for it to catch up. Beyond it Next fails at once with a
	// *ClockError, as TryNext does for any step back beyond MaxAhead.
	// 0 means 10 seconds.
	MaxLag time.Duration
}

// defaultMaxLag is Options.MaxLag where it is 0: NTP steps of a running machine
// are smaller, and nobody waits longer for an ID without asking why.
const defaultMaxLag = 10 * time.Second

// staticSpan is how much time a batch may span under a static grant, which has
// no end that would bound it: what a sequencer's window usually is. A batch
// that MaxAhead allows at once may be larger.
const staticSpan = time.Minute

// horizon is the year that a generator's 63-bit word must reach, unless the
// layout ends before: the end of what int64 nanoseconds since 1970 can say.
var horizon = time.Unix(0, math.MaxInt64)

// init makes c ready. size and twin are for the error about the wrong width.
func (c *core) init(layout Layout, grant Grant, o *Options, size uint8, twin string) error {
	if err := layout.need(size, twin); err != nil {
		return err
	}
	if o == nil {
		o = &Options{MaxAhead: layout.MaxAhead()}
	}
	if o.MaxAhead < 0 || o.MaxLag < 0 {
		return fmt.Errorf("firn: MaxAhead is %v and MaxLag %v: neither can be negative", o.MaxAhead, o.MaxLag)
	}
	c.layout = layout
	c.clock = clock{now: o.Now, layout: &c.layout}
	if c.clock.now == nil {
		c.clock.now = time.Now
		// Half a tick, so that no ID is of more than a tick ago.
		c.watch.Init(layout.unit / 2)
	}
	c.maxAhead, c.maxLag = o.MaxAhead, o.MaxLag
	if c.maxLag == 0 {
		c.maxLag = defaultMaxLag
	}
	c.aheadTicks, c.aheadRest = uint64(c.maxAhead/layout.unit), uint64(c.maxAhead%layout.unit)
	c.mostStatic = math.MaxUint64
	if ticks := max(uint64(staticSpan/layout.unit), c.aheadTicks+1); ticks <= math.MaxUint64>>layout.seqBits {
		c.mostStatic = ticks << layout.seqBits
	}
	c.changed = make(chan struct{})

	if int(layout.timeBits)+int(layout.seqBits) < 63 {
		c.lastTick = 1 << layout.timeBits
	} else {
		// One tick less than fits, so that no limit reaches the bit sealed.
		c.lastTick = 1<<(63-layout.seqBits) - 1
		if cutsReversed(&layout) {
			return fmt.Errorf("firn: layout %s cannot be generated: tick and sequence are counted in 63 bits, and a reversed time must fit as a whole: take at most %d bits of time and sequence",
				layout, 63)
		}
		end, err := layout.timeOf(c.lastTick)
		if err == nil && end.Before(horizon) && end.Before(layout.Last()) {
			return fmt.Errorf("firn: layout %s cannot be generated: tick and sequence are counted in 63 bits, and %d bits of sequence leave %d for ticks of %v, which end in %d",
				layout, layout.seqBits, 63-layout.seqBits, layout.unit, end.Year())
		}
	}
	t, err := c.newTerm(grant)
	if err != nil {
		return err
	}
	c.term.Store(t)
	return nil
}

// newTerm makes the term of a grant.
func (c *core) newTerm(g Grant) (*term, error) {
	if most := c.layout.MaxNode(); g.Node > most {
		return nil, c.layout.rangeError("node", g.Node, most)
	}
	if !g.From.IsZero() && !g.Until.IsZero() && !g.From.Before(g.Until) {
		return nil, fmt.Errorf("firn: the grant of node %d is empty: it begins at %s and ends at %s", g.Node, stamp(g.From), stamp(g.Until))
	}
	t := &term{grant: g, composer: *newComposer(&c.layout, g.Node), static: g.From.IsZero()}
	first := uint64(0)
	if !t.static {
		tick, rest, where := c.layout.tickAt(g.From)
		switch {
		case where < 0:
			tick = 0
		case where > 0:
			tick = c.lastTick
		case rest > 0:
			tick++
		}
		first = min(tick, c.lastTick) << c.layout.seqBits
		if first == 0 && t.composer.base.isZero() {
			first = 1 // slot 0 would be the ID 0, which means no ID
		}
	}
	t.begin(first)
	t.limit.Store(c.limit(g.Until))
	return t, nil
}

// limit is the exclusive slot at which a grant until this time ends.
func (c *core) limit(until time.Time) uint64 {
	tick := c.lastTick
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

// view is a term and its word, with the slots the clock allows for them.
type view struct {
	term  *term
	now   reading
	word  uint64
	slot  uint64 // the next slot: the word, or the clock where that is later
	limit uint64 // exclusive: end of grant and layout
	ahead uint64 // exclusive: end of what MaxAhead allows now

	look freshness.Look
}

// look reads the state. The error is ErrSealed or a *ClockError.
func (c *core) look() (v view, err error) {
	for {
		v.term = c.term.Load()
		v.word = v.term.word.Load()
		if v.word&sealed != 0 {
			if c.sealedForGood() {
				return v, ErrSealed
			}
			continue // Switch has put another term in place
		}
		if err := c.readClock(&v); err != nil {
			return v, err
		}
		v.limit = v.term.limit.Load()
		seqBits := c.layout.seqBits
		clock := min(v.now.tick, c.lastTick) << seqBits
		v.ahead = (min(c.aheadTick(v.now), c.lastTick-1) + 1) << seqBits
		if v.word == 0 && v.term.static {
			// Whoever had the number before may have been this far ahead.
			start := max(v.term.first, v.ahead)
			if start < v.limit {
				if !v.term.swap(0, start, 0) {
					continue
				}
				v.term.start.Store(start)
			}
			v.word = start
		}
		v.slot = max(v.word, clock)
		return v, nil
	}
}

// readClock reads the clock, and the counter around it.
func (c *core) readClock(v *view) (err error) {
	if !c.watch.On() {
		v.now, err = c.clock.read()
		return err
	}
	l := c.watch.Begin()
	now := c.clock.now()
	v.look = c.watch.End(l, now)
	v.now, err = c.clock.reading(now)
	return err
}

// aheadTick is the last tick that the clock and MaxAhead allow.
func (c *core) aheadTick(now reading) uint64 {
	tick := now.tick + c.aheadTicks
	if now.rest+c.aheadRest >= uint64(c.layout.unit) {
		tick++
	}
	if tick < now.tick {
		return math.MaxUint64
	}
	return tick
}

// sealedForGood reports whether Seal was called, once a Switch under way is
// done.
func (c *core) sealedForGood() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isSealed
}

// takeOne is take(1), without a look at the clock where the last one is fresh
// by another counter than the one that term.quick asks.
func (c *core) takeOne() (*term, uint64, error) {
	t := c.term.Load()
	if slot, ok := t.below(t.window.EndBy(&c.watch)); ok {
		return t, slot, nil
	}
	t, slot, _, err := c.take(1)
	return t, slot, err
}

// waitOne is takeOne for a call that may wait.
func (c *core) waitOne(ctx context.Context) (t *term, slot uint64, err error) {
	busy := c.line.busy()
	if !busy {
		t, slot, err = c.takeOne()
	}
	if busy || err != nil {
		t, slot, _, err = c.takeInLine(ctx, waiter{want: 1}, err)
	}
	return t, slot, err
}

// takeUpTo is take, without a look at the clock where the last one is fresh and
// allows all that is wanted.
func (c *core) takeUpTo(want uint64) (*term, uint64, uint64, error) {
	t := c.term.Load()
	end := t.window.End(freshness.Cycles())
	if end == 0 {
		end = t.window.EndBy(&c.watch)
	}
	if slot, ok := t.allBelow(want, end); ok {
		return t, slot, want, nil
	}
	return c.take(want)
}

// take takes up to want slots that may be used now, and at least one. It takes
// none while a batch waits at the head of the line.
func (c *core) take(want uint64) (t *term, slot, n uint64, err error) {
	for {
		v, err := c.look()
		if err != nil {
			return nil, 0, 0, err
		}
		end, held := min(v.limit, v.ahead), c.line.held.Load()
		if v.slot >= end || held > 0 {
			if c.term.Load() != v.term {
				continue // refused by a term that has ended
			}
			if v.slot >= v.limit {
				return nil, 0, 0, c.over(v)
			}
			return nil, 0, 0, c.notYet(v, max(v.slot, held), 1)
		}
		n := min(want, end-v.slot)
		if v.term.swap(v.word, v.slot, n) {
			c.open(&v, min(end, v.slot+n+freshness.Most))
			return v.term, v.slot, n, nil
		}
	}
}

// open opens the window of the term that slots were taken from, for what lies
// below end.
func (c *core) open(v *view, end uint64) {
	if c.watch.On() && !c.line.busy() { // calls that wait come first
		c.watch.Open(&v.term.window, v.look, end)
	}
}

// takeBatch takes what w wants, which is a batch, if it may be used now.
func (c *core) takeBatch(w *waiter) (t *term, slot uint64, err error) {
	for {
		v, err := c.look()
		if err != nil {
			return nil, 0, err
		}
		slot, err := c.place(v, w)
		if err != nil {
			if c.term.Load() != v.term {
				continue
			}
			return nil, 0, err
		}
		if v.term.swap(v.word, slot, w.want) {
			return v.term, slot, nil
		}
	}
}

// place is the slot at which a waiter's slots begin, or why it cannot have any
// yet. A batch has all its slots or none.
//
// A batch larger than MaxAhead ends within MaxAhead only if its first slots are
// behind the clock by then. None of them is of a time before the call: w.from
// remembers the clock that it began at.
func (c *core) place(v view, w *waiter) (slot uint64, err error) {
	slot, need := v.slot, uint64(1)
	if w.batch {
		w.from = min(w.from, c.clockSlot(v)) // lower where the clock went back
		slot, need = max(v.word, w.from), w.want
		if err := c.tooLarge(v.term, need); err != nil {
			return 0, err
		}
	}
	switch {
	case slot >= v.limit || need > v.limit-slot:
		return slot, c.over(v)
	case slot >= v.ahead || need > v.ahead-slot:
		return slot, c.notYet(v, slot+need-1, need)
	}
	return slot, nil
}

// clockSlot is the first slot of the clock's tick.
func (c *core) clockSlot(v view) uint64 { return min(v.now.tick, c.lastTick) << c.layout.seqBits }

// tooLarge is the error of a batch that a static grant does not allow.
func (c *core) tooLarge(t *term, n uint64) error {
	if !t.static || n <= c.mostStatic {
		return nil
	}
	return fmt.Errorf("%w: %d IDs span %v, and with a static grant a batch spans at most %v: ask for fewer at a time, or use Fill",
		ErrBatchTooLarge, n, c.spanOf(n), c.spanOf(c.mostStatic))
}

// spanOf is how long n slots last.
func (c *core) spanOf(n uint64) time.Duration {
	ticks := (n-1)>>c.layout.seqBits + 1
	return span(ticks, c.layout.unit)
}

// takeAll takes n slots at once, whatever MaxAhead says, and returns how long
// to hold them by Hazelcast's formula: whole ticks from the clock's tick to the
// end of the batch, exclusive, less MaxAhead.
//
// Under a static grant, which has no end, reservations run ahead of what
// MaxAhead allows by no more than one batch may span.
func (c *core) takeAll(n uint64) (t *term, slot uint64, hold time.Duration, err error) {
	for {
		v, err := c.look()
		if err != nil {
			return nil, 0, 0, err
		}
		switch held := c.line.held.Load(); {
		case v.slot >= v.limit || n > v.limit-v.slot:
			err = c.over(v)
		case held > 0:
			err = c.notYet(v, max(v.slot, held), n)
		case v.term.static && v.slot+n > v.ahead && v.slot+n-v.ahead > c.mostStatic:
			err = c.notYet(v, v.slot+n-c.mostStatic-1, n)
		}
		if err != nil {
			if c.term.Load() != v.term {
				continue
			}
			return nil, 0, 0, err
		}
		hold = max(0, span((v.slot+n-c.clockSlot(v))>>c.layout.seqBits, c.layout.unit)-c.maxAhead)
		if v.slot+n > v.ahead {
			v.term.debt.Store(&debt{from: v.slot, to: v.slot + n, now: v.now})
		}
		if v.term.swap(v.word, v.slot, n) {
			return v.term, v.slot, hold, nil
		}
	}
}

// over is why no slot at or above the limit is available.
func (c *core) over(v view) error {
	if v.limit == c.lastTick<<c.layout.seqBits {
		return ErrTimeOver
	}
	return ErrGrantOver
}

// notYet says how long it takes until slot, the last one that a call for n IDs
// needs, may be used, and whether that is because the clock went back.
func (c *core) notYet(v view, slot, n uint64) error {
	wait := max(1, c.until(slot>>c.layout.seqBits, v.now))
	back := time.Duration(0)
	reached := v.term.reached(v.word)
	switch d := v.term.debt.Load(); {
	case reached == 0:
		// No ID was ever made: the grant begins later than now.
	case d != nil && d.covers(reached):
		// The last ID was reserved ahead of the clock.
		if v.now.before(d.now) {
			back = span(d.now.tick-v.now.tick, c.layout.unit)
		}
	default:
		// The last ID's time was allowed when it was made.
		back = c.until((reached-1)>>c.layout.seqBits, v.now)
	}
	if back <= 0 {
		return &WaitError{Wait: wait, n: n}
	}
	last, _ := c.layout.timeOf((reached - 1) >> c.layout.seqBits)
	return &ClockError{Now: c.timeOf(v.now), Last: last, Wait: wait, back: back}
}

// until is the time from now until MaxAhead allows the tick.
func (c *core) until(tick uint64, now reading) time.Duration {
	if tick <= now.tick {
		return 0
	}
	return span(tick-now.tick, c.layout.unit) - time.Duration(now.rest) - c.maxAhead
}

// changes is closed at the next change of the grant. Who waits asks for it
// before it tries, so that no change comes between the refusal and the wait.
func (c *core) changes() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// waitFor is how long to wait after a refusal, where waiting can help.
func (c *core) waitFor(err error) (time.Duration, bool) {
	var w *WaitError
	if errors.As(err, &w) {
		return w.Wait, true
	}
	var e *ClockError
	if errors.As(err, &e) && !e.beforeEpoch && e.back <= c.maxLag {
		return e.Wait, true
	}
	return 0, false
}

// A sleep is no longer than maxSleep, because the clock may be set right
// meanwhile, and no shorter than minSleep, so that a clock that stands still
// does not make a waiting call spin.
const (
	minSleep = 10 * time.Microsecond
	maxSleep = time.Second
)

// sleep waits for d, or less when changed is closed. It reports whether done
// was closed first.
func sleep(done <-chan struct{}, d time.Duration, changed <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
	}
	timer := time.NewTimer(min(max(d, minSleep), maxSleep))
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-changed:
	case <-timer.C:
	}
	return false
}

// needContext panics for a nil context. Every call that takes a context calls
// it first, so that the mistake shows at the first call, and not at the first
// one that has to wait.
func needContext(ctx context.Context) {
	if ctx == nil {
		panic("firn: the context is nil: pass context.Background() to wait for as long as it takes")
	}
}

// timeOf is the time of a reading.
func (c *core) timeOf(now reading) time.Time {
	t, _ := c.layout.timeOf(now.tick)
	return t.Add(time.Duration(now.rest))
}

// Extend makes the window of the current grant end later. A time before its
// present end is an error, and changes nothing; the zero time means no end.
func (c *core) Extend(until time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isSealed {
		return ErrSealed
	}
	t := c.term.Load()
	limit := c.limit(until)
	if limit < t.limit.Load() {
		end, _ := c.layout.timeOf(t.limit.Load() >> c.layout.seqBits)
		return fmt.Errorf("firn: extend the grant of node %d: %s is before its present end, %s, and a window never shrinks", t.grant.Node, stamp(until), stamp(end))
	}
	t.limit.Store(limit)
	return nil
}

// Switch goes on under another grant, at a tick above the last one used, so
// that IDs keep increasing. Calls under way end under one of the two grants;
// none takes a slot of the old one after Switch has returned.
func (c *core) Switch(g Grant) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isSealed {
		return ErrSealed
	}
	old := c.term.Load()
	t, err := c.newTerm(g) // before the old term is sealed, to find what is wrong with g
	if err != nil {
		return err
	}
	slot, any := c.seal(old)
	if any {
		c.floor = c.roundUp(slot)
	}
	t.floor = c.floor
	t.begin(max(t.first, c.floor))
	if d := old.debt.Load(); d != nil && d.covers(old.reached(slot)) {
		t.debt.Store(&debt{from: d.from, to: c.floor, now: d.now})
	}
	c.retired = append(c.retired, old)
	c.countRetired()
	c.term.Store(t)
	c.notify()
	return nil
}

// Seal ends the generator: no slot is taken after it returns. A call that had
// taken one before may still return it; the time given covers it. It is the
// exclusive end of the times used, under the current grant or earlier ones, or
// the grant's From where that is later: whoever has the node ID next must
// not begin before. It is the zero time if a static grant was never asked.
// Sealing again changes nothing and gives the same.
func (c *core) Seal() (until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isSealed = true
	t := c.term.Load()
	slot, any := c.seal(t)
	c.notify()
	if any {
		c.floor = c.roundUp(slot)
	}
	until = t.grant.From
	if c.floor > 0 {
		if used, _ := c.layout.timeOf(c.floor >> c.layout.seqBits); used.After(until) {
			until = used
		}
	}
	return until
}

// Used is the exclusive end of the times used so far, under any grant, or the
// zero time if no ID was made. A call under way may have taken one and not
// counted yet. It never goes back.
func (c *core) Used() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	slot, any := c.term.Load().end()
	if slot = c.roundUp(slot); !any {
		slot = c.floor
	}
	if slot == 0 {
		return time.Time{}
	}
	used, _ := c.layout.timeOf(slot >> c.layout.seqBits)
	return used
}

// seal marks the very word that calls swap, so none of them can win after it.
func (c *core) seal(t *term) (slot uint64, any bool) {
	t.over.Store(true)
	t.word.Or(sealed)
	return t.end()
}

// roundUp is the first slot of the next tick, or slot where it is the first.
func (c *core) roundUp(slot uint64) uint64 {
	m := mask(c.layout.seqBits)
	return (slot + m) &^ m
}

func (c *core) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Layout is the layout of the generator's IDs.
func (c *core) Layout() Layout { return c.layout }

// Grant is the current grant, as it was given; Extend does not change it.
func (c *core) Grant() Grant { return c.term.Load().grant }
