package auth

import (
	"sync"
	"time"
)

// How often a principal may use names that do not exist: each costs a read of
// the store, which others need. A client that looks for what there is makes a
// few hundred.
const (
	missBurst = 500
	missEvery = 10 * time.Millisecond
)

// misses are the uses of such names, by principal. The zero value is none.
type misses struct {
	mu sync.Mutex                      // guards what follows
	by map[[identityLen]byte]time.Time // when all of one are paid for, at missEvery each
}

// note counts one.
func (m *misses) note(p *Principal, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = make(map[[identityLen]byte]time.Time)
	}
	paid := m.by[p.account()]
	if paid.Before(now) {
		paid = now
	}
	m.by[p.account()] = paid.Add(missEvery)
}

// wait returns a *PaceError while there were too many.
func (m *misses) wait(p *Principal, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	free := now.Add((missBurst - 1) * missEvery)
	if wait := m.by[p.account()].Sub(free); wait > 0 {
		return &PaceError{Wait: wait, misses: true}
	}
	return nil
}
