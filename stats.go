package firn

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// Stats are statistics of a generator since it was made.
type Stats struct {
	IDs       uint64        // made, one by one or in batches
	Batches   uint64        // made by NextBatch, TryNextBatch and Reserve, and pieces made by Fill
	Waits     uint64        // calls that had to wait
	TotalWait time.Duration // total of these calls
	Lead      time.Duration // how far the last ID's time is ahead of the clock; negative when idle
}

// waits counts calls that had to wait.
type waits struct {
	count atomic.Uint64
	total atomic.Int64 // nanoseconds
}

func (w *waits) add(d time.Duration) {
	w.count.Add(1)
	w.total.Add(int64(d))
}

// countRetired adds the IDs of earlier terms to the count as soon as they are
// known.
func (c *core) countRetired() {
	c.retired = slices.DeleteFunc(c.retired, func(t *term) bool {
		n, ok := t.made()
		if ok {
			c.earlier += n
		}
		return ok
	})
}

// countAll counts the IDs of all terms. It reports false, and adds none, while
// the count of a term is unknown.
func (c *core) countAll() bool {
	c.countRetired()
	n, ok := c.term.Load().made()
	if ok = ok && len(c.retired) == 0; ok {
		c.reported = max(c.reported, c.earlier+n)
	}
	return ok
}

// Stats returns statistics of the generator. Its counts never fall; Lead does.
// After Seal, they include every ID, even those that calls in progress will
// return.
func (g *GeneratorOf[I]) Stats() Stats { return g.stats() }

func (c *core) stats() Stats {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.countAll() && c.sealed {
		// Some calls are inside swap, which does not wait, and no new ones
		// begin: this is the last chance to count what they took. The package
		// spins nowhere else; a way to wait for them would cost every swap.
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	t := c.term.Load()
	s := Stats{
		IDs:       c.reported,
		Batches:   c.batches.Load(),
		Waits:     c.waits.count.Load(),
		TotalWait: time.Duration(c.waits.total.Load()),
	}
	if end := t.usedEnd(t.word.Load()); end > 0 {
		if last, err := c.layout.timeOf((end - 1) >> c.layout.seqBits); err == nil {
			s.Lead = last.Sub(now)
		}
	}
	return s
}
