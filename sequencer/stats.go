package sequencer

import (
	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// Stats are statistics of a sequencer in a process.
type Stats struct {
	firn.Stats
	Keeper grant.KeeperStats
}

// Stats returns statistics since the sequencer was opened. Its counts never
// fall.
func (q *SequencerOf[I]) Stats() Stats {
	q.mu.Lock()
	s := Stats{Stats: q.sealedStats}
	current := q.current.Load() // under the lock, so that its counts are not yet in sealedStats
	q.mu.Unlock()
	if current != nil {
		now := current.Stats() // calls the clock, which may panic
		s.Stats = sumStats(s.Stats, now)
		s.Lead = now.Lead
	}
	s.Keeper = q.keeper.Stats()
	return s
}

// sumStats adds the counts of a sealed generator.
func sumStats(a, b firn.Stats) firn.Stats {
	return firn.Stats{
		IDs: a.IDs + b.IDs, Batches: a.Batches + b.Batches, Waits: a.Waits + b.Waits,
		TotalWait: a.TotalWait + b.TotalWait,
	}
}
