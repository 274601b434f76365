package firn

import (
	"fmt"
	"sync/atomic"
	"time"
)

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

// staticAhead is MaxAhead for a static grant with nil Options. A generator
// starts this far ahead of its reference, so the layout's value would show in
// the times of its IDs. It is enough to make IDs at full speed, although the
// system wakes waiting calls a little late.
const staticAhead = 5 * time.Millisecond

// staticSpan is the maximum time that a batch may span under a static grant,
// which has no end to bound it: the usual length of a sequencer's window. A
// batch that MaxAhead allows at once may be larger.
const staticSpan = time.Minute

// processStart is the time when the process initialized this package. An
// earlier process that has ended made all its IDs before.
var processStart = time.Now()

// startUsed is set once a static grant has processStart as its reference. A
// second generator may follow the first on the same node ID, and the first may
// have run ahead.
var startUsed atomic.Bool

// newReference returns the time before which earlier holders of a static node
// ID made their last IDs: the start of the process for its first generator with
// a static grant, and now for a later one.
func newReference() time.Time {
	now := time.Now()
	if isOutsideBubble(now) && startUsed.CompareAndSwap(false, true) {
		return processStart
	}
	return now
}

// isOutsideBubble reports whether a time of time.Now was read outside a
// synctest bubble: in a bubble, it has no monotonic part.
func isOutsideBubble(now time.Time) bool { return now != now.Round(0) }

// staticStart returns the first slot of a static term: the previous holder of
// the node ID may have been as far ahead of the reference as MaxAhead allows.
func (c *core) staticStart(v *view) uint64 {
	if r, ok := c.referenceReading(v); ok {
		return max(v.term.first, c.aheadSlot(r))
	}
	return max(v.term.first, v.ahead)
}

// referenceReading returns the reference of a view's term as a reading of the
// clock. ok is false if it has none, if the layout has no tick for it, and in a
// synctest bubble: then it is the first reading of the clock.
func (c *core) referenceReading(v *view) (r reading, ok bool) {
	ref := v.term.reference
	if ref.IsZero() || !isOutsideBubble(v.at) {
		return r, false
	}
	r, err := c.readingOf(ref)
	return r, err == nil && r.tick < c.endTick
}

// tooLargeError returns the error for a batch that a static grant does not
// allow.
func (c *core) tooLargeError(t *term, n uint64) error {
	if !t.static || n <= c.maxStaticBatch {
		return nil
	}
	return fmt.Errorf("%w: %d IDs span %v, and with a static grant a batch spans at most %v: ask for fewer at a "+
		"time, or use Fill",
		ErrBatchTooLarge, n, c.spanOf(n), c.spanOf(c.maxStaticBatch))
}
