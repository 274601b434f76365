package firn

import "time"

// A pace knows how long fetches take, and so whether larger ones help. A fetch
// that takes the time of a round trip takes as long for more IDs. From a source
// with a rate, twice as many IDs take twice as long: callers get no more of
// them, and wait longer at a time.
type pace struct {
	count   int           // of the fetches that follow
	best    time.Duration // the shortest of these
	fetches int           // how many there were
	below   time.Duration // the shortest of half as many IDs, just before; 0 if not known

	ceiling int // the count that is not passed; 0 if there is none
	held    int // how often it was not passed
	retry   int // how often it is not, before it is tried again
}

// How often growth is held back at first, and at most, before it is tried
// again: a slow fetch may have been chance, and sources change.
const (
	retryFirst = 32
	retryMost  = 1024
)

// note notes how long a fetch took.
func (p *pace) note(count int, took time.Duration) {
	if count == p.count {
		p.best = min(p.best, took)
		p.fetches++
		return
	}
	p.below = 0
	if count == 2*p.count {
		p.below = p.best
	}
	p.count, p.best, p.fetches = count, took, 1
}

// grow returns the count to ask for when a caller had to wait, from least to
// most.
func (p *pace) grow(count, least, most int) int {
	if p.ceiling > 0 && count >= p.ceiling {
		if p.held++; p.held < p.retry {
			return count
		}
		p.ceiling, p.held = 0, 0
	}
	if p.count != count {
		return count // none has come yet
	}
	// Worth while is what shortens the time for an ID by a fifth.
	if p.below > 0 && p.best > p.below+p.below*3/5 {
		if p.fetches == 1 {
			return count // another look: one may be slow by chance
		}
		p.ceiling = max(count/2, least)
		p.retry = min(max(2*p.retry, retryFirst), retryMost)
		return p.ceiling
	}
	return min(2*count, most)
}
