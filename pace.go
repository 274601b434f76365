package firn

import "time"

// A pace measures how long fetches take, to decide whether larger ones help. If
// the time of a fetch is mostly the round trip, more IDs take no longer. If the
// source has a limited rate, twice as many IDs take twice as long: callers get
// no more IDs per second, and wait longer each time.
type pace struct {
	count   int           // the size of the measured fetches
	best    time.Duration // the shortest of these
	fetches int           // number of these
	half    time.Duration // the shortest fetch of half as many IDs, just before; 0 if unknown

	hold int // how often growth is still held back
}

// holdFor is how often growth is held back before it is tried again: a slow
// fetch may have been an accident, and sources change.
const holdFor = 256

// record records how long a fetch took.
func (p *pace) record(count int, took time.Duration) {
	if count == p.count {
		p.best = min(p.best, took)
		p.fetches++
		return
	}
	p.half = 0
	if count == 2*p.count {
		p.half = p.best
	}
	p.count, p.best, p.fetches = count, took, 1
}

// grow returns the count to ask for after a caller had to wait, between least
// and most.
func (p *pace) grow(count, least, most int) int {
	if p.hold > 0 {
		p.hold--
		return count
	}
	if p.count != count {
		return count // no fetch has completed yet
	}
	// Growing is worthwhile if it shortens the time per ID by a fifth.
	if p.half > 0 && p.best > p.half+p.half*3/5 {
		if p.fetches == 1 {
			return count // measure again: one fetch may be slow by accident
		}
		p.hold = holdFor
		return max(count/2, least)
	}
	return min(2*count, most)
}
