package auth

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"
)

// How fast a principal creates sequencers by using them: a burst is what a
// deployment names at once, and the pace what a store with a disk bears beside
// its other work.
const (
	createBurst = 50
	createEvery = time.Second
)

// errNoCreation is that of a principal that creates none.
var errNoCreation = fmt.Errorf("%w: it cannot create sequencers by using them; create the sequencer first (firn sequencer create)", ErrForbidden)

// A PaceError says that a principal creates sequencers too fast, or uses names
// that do not exist.
type PaceError struct {
	Wait time.Duration

	misses bool
}

func (e *PaceError) Error() string {
	if e.misses {
		return fmt.Sprintf("this token uses more than %d names a second that do not exist: retry in %v", time.Second/missEvery, e.Wait.Round(time.Millisecond))
	}
	return fmt.Sprintf("this token creates sequencers faster than one every %v: retry in %v, or create them first (firn sequencer create)", createEvery, e.Wait.Round(time.Millisecond))
}

// creations are the sequencers that principals have created by using them,
// since the server was started. The zero value is none.
type creations struct {
	mu sync.Mutex // guards what follows
	by map[[identityLen]byte]*creation
}

// A creation is that of one principal.
type creation struct {
	names map[string]struct{}
	next  time.Time // when one more may be created after a burst, less createBurst paces
}

// note counts a sequencer that a principal is about to create, once.
func (c *creations) note(p *Principal, sequencer string, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = make(map[[identityLen]byte]*creation)
	}
	mine := c.by[p.account()]
	if mine == nil {
		mine = &creation{names: make(map[string]struct{})}
		c.by[p.account()] = mine
	}
	if _, again := mine.names[sequencer]; again {
		return nil // an attempt before did not come to its end
	}
	if len(mine.names) >= p.creates {
		return fmt.Errorf("%w: it has created %d sequencers by using them since this server was started, and may create %d; create the sequencer first (firn sequencer create)", ErrForbidden, len(mine.names), p.creates)
	}
	if mine.next.Before(now) {
		mine.next = now
	}
	if wait := mine.next.Sub(now) - (createBurst-1)*createEvery; wait > 0 {
		return &PaceError{Wait: wait}
	}
	mine.next = mine.next.Add(createEvery)
	mine.names[strings.Clone(sequencer)] = struct{}{}
	return nil
}

// account is what a principal's creations are counted by: for a token the name
// of its entry, as a rotated token is the same client.
func (p *Principal) account() [identityLen]byte {
	if p.subject != (subject{}) {
		return p.identity()
	}
	sum := sha256.Sum256([]byte("name " + p.Name))
	return [identityLen]byte(sum[:identityLen])
}
