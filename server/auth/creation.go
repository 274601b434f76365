package auth

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"
)

// The rate at which a principal can create sequencers by using them. The burst
// covers the names that a deployment uses at once; the pace is what a store on
// a disk can handle besides its other work.
const (
	createBurst = 50
	createEvery = time.Second
)

// errNoCreation is the error for a principal that may not create sequencers.
var errNoCreation = fmt.Errorf("%w: this token cannot create sequencers by using them; create the sequencer first (firn sequencer create)", ErrForbidden)

// A PaceError means that a principal creates sequencers, or uses unknown names,
// too fast.
type PaceError struct {
	Wait time.Duration

	misses bool
}

func (e *PaceError) Error() string {
	if e.misses {
		return fmt.Sprintf("this token uses more than %d unknown names per second: retry in %v", time.Second/missEvery, e.Wait.Round(time.Millisecond))
	}
	return fmt.Sprintf("this token creates sequencers faster than one every %v: retry in %v, or create them first (firn sequencer create)", createEvery, e.Wait.Round(time.Millisecond))
}

// creations records the sequencers that principals have created by using them
// since the server started. The zero value is empty.
type creations struct {
	mu sync.Mutex // guards the fields below
	by map[[identityLen]byte]*creation
}

// A creation records the sequencers of one principal.
type creation struct {
	names map[string]struct{}

	// next is when the next one is due at the steady rate. A burst is ahead of it
	// by up to createBurst - 1 sequencers.
	next time.Time
}

// note counts a sequencer that a principal is about to create. It counts each
// name once.
func (c *creations) note(p *Principal, sequencer string, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = make(map[[identityLen]byte]*creation)
	}
	account := p.account()
	mine := c.by[account]
	if mine == nil {
		mine = &creation{names: make(map[string]struct{})}
		c.by[account] = mine
	}
	if _, again := mine.names[sequencer]; again {
		return nil // an earlier attempt did not finish
	}
	if len(mine.names) >= p.creates {
		return fmt.Errorf("%w: this token has created %d sequencers by using them since this server started, and may create %d; create the sequencer first (firn sequencer create)", ErrForbidden, len(mine.names), p.creates)
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

// account returns the key under which a principal's creations and misses are
// counted: for a token the name of its entry, because a rotated token is the
// same client.
func (p *Principal) account() [identityLen]byte {
	if p.subject != (subject{}) {
		return p.identity()
	}
	sum := sha256.Sum256([]byte("name " + p.Name))
	return [identityLen]byte(sum[:identityLen])
}
