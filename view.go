package firn

import (
	"time"

	"github.com/firnid/firn/internal/freshness"
)

// A view is a term and its word, with the slots that the clock allows.
type view struct {
	term  *term
	now   reading
	at    time.Time // the clock when it read now
	word  uint64
	slot  uint64 // the next slot: the word, or the clock if that is later
	limit uint64 // exclusive: end of grant and layout
	ahead uint64 // exclusive: the end of what MaxAhead allows now

	seen freshness.Observation
}

// loadView sets v to the current state. The error is ErrSealed or a
// *ClockError.
func (c *core) loadView(v *view) error {
	for {
		v.term = c.term.Load()
		v.word = v.term.word.Load()
		if v.word&sealedBit != 0 {
			if c.sealedForGood() {
				return ErrSealed
			}
			continue // Switch has replaced the term
		}
		if err := c.readClock(v); err != nil {
			return err
		}
		v.limit = v.term.limit.Load()
		v.ahead = c.aheadSlot(v.now)
		if v.word == 0 && v.term.static {
			start := c.staticStart(v)
			if start < v.limit {
				// Before the word, or it would look used in between. All calls
				// begin where the first of them has read the clock.
				if !v.term.staticFirst.CompareAndSwap(0, start) {
					start = v.term.staticFirst.Load()
				}
				if !v.term.swap(0, start, 0) {
					continue
				}
			}
			v.word = start
		}
		v.slot = max(v.word, c.clockSlot(v))
		return nil
	}
}
