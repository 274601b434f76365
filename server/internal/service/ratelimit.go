package service

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/firnid/firn/server/internal/access/auth"
)

// A rateError means that a client creates sequencers, or uses unknown names,
// too fast for this server.
type rateError struct {
	Wait time.Duration
	what string
}

func (e *rateError) Error() string {
	return fmt.Sprintf("%s: retry in %v", e.what, e.Wait.Round(time.Millisecond))
}

// meters limit how often each client does something. A client is the name of
// its entry in the token file; those without one are one client.
type meters struct {
	rate auth.Rate

	mu       sync.Mutex // guards byClient
	byClient map[string]*auth.Meter
}

// waitTime returns how long the next one of a client must wait.
func (m *meters) waitTime(client string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if of := m.byClient[client]; of != nil {
		return of.Wait(m.rate, 1)
	}
	return 0
}

// charge counts one of a client.
func (m *meters) charge(client string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byClient[client] == nil {
		maps.DeleteFunc(m.byClient, func(_ string, of *auth.Meter) bool { return of.Idle() })
		if m.byClient == nil {
			m.byClient = make(map[string]*auth.Meter)
		}
		m.byClient[client] = new(auth.Meter)
	}
	m.byClient[client].Charge(m.rate, 1)
}
