package auth

import (
	"sync"
	"time"
)

// How fast a principal may use unknown names. Each costs a read of the store,
// which others need. A client that searches for existing names uses a few
// hundred.
const (
	missBurst = 500
	missEvery = 10 * time.Millisecond
)

// misses counts the uses of unknown names by principal. The zero value is
// empty.
type misses struct {
	mu sync.Mutex                      // guards by
	by map[[identityLen]byte]time.Time // when a principal's misses are paid off, at missEvery each
}

// note counts a miss.
func (m *misses) note(p *Principal, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = make(map[[identityLen]byte]time.Time)
	}
	account := p.account()
	paid := m.by[account]
	if paid.Before(now) {
		paid = now
	}
	m.by[account] = paid.Add(missEvery)
}

// wait returns a *PaceError while there are too many misses.
func (m *misses) wait(p *Principal, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	free := now.Add((missBurst - 1) * missEvery)
	if wait := m.by[p.account()].Sub(free); wait > 0 {
		return &PaceError{Wait: wait, misses: true}
	}
	return nil
}
