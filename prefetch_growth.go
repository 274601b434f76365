package firn

import "time"

// A growth decides how many IDs to fetch: it measures how long fetches take,
// and whether larger ones help. If the time of a fetch is mostly the round
// trip, more IDs take no longer. If the source has a limited rate, twice as
// many IDs take twice as long: callers get no more IDs per second, and wait
// longer each time.
type growth struct {
	count    int           // the size of the measured fetches
	shortest time.Duration // the shortest of these
	fetches  int           // number of these
	half     time.Duration // the shortest fetch of half as many IDs, just before; 0 if unknown

	skips int // how often growth is not tried yet
}

// maxSkips is how often growth is not tried after it did not help or failed: a
// slow fetch may have been an accident, and sources change.
const maxSkips = 256

// record records how long a fetch took.
func (g *growth) record(count int, took time.Duration) {
	if count == g.count {
		g.shortest = min(g.shortest, took)
		g.fetches++
		return
	}
	g.half = 0
	if count == 2*g.count {
		g.half = g.shortest
	}
	g.count, g.shortest, g.fetches = count, took, 1
}

// fail returns the count to ask for after a fetch of n IDs failed, which is no
// longer tried for a while if it was larger than the last one that worked:
// perhaps the source has a limit. smaller reports whether the next fetch will
// be smaller for that reason.
func (g *growth) fail(n, count, minCount int) (next int, smaller bool) {
	if g.count == 0 || n <= max(g.count, minCount) {
		return count, false
	}
	g.skips = maxSkips
	return max(g.count, minCount), true
}

// next returns the count to ask for after a caller had to wait, between
// minCount and maxCount.
func (g *growth) next(count, minCount, maxCount int) int {
	if g.skips > 0 {
		g.skips--
		return count
	}
	if g.count != count {
		return count // no fetch has completed yet
	}
	// Growing is worthwhile if it shortens the time per ID by a fifth.
	if g.half > 0 && g.shortest > g.half+g.half*3/5 {
		if g.fetches == 1 {
			return count // measure again: one fetch may be slow by accident
		}
		g.skips = maxSkips
		return max(count/2, minCount)
	}
	return min(2*count, maxCount)
}
