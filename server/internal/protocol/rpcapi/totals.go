package rpcapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Limits of the memory for answers that clients do not read. gRPC accepts an
// answer as a whole and then regards the call as ended, whatever happens to the
// bytes. So a Stream and a call for many IDs reserve room before they take IDs,
// and gRPC gives it back when the answer has left the process.
const (
	manyOctets = 16 << 10 // size of an answer that reserves room
	maxHeld    = 2 << 20  // of a connection
	maxHeldAll = 16 << 20 // of all connections

	// maxPause is how long a client may not read before its connection is closed,
	// one every fullPause, while all of that is in use.
	maxPause  = time.Second
	fullPause = 50 * time.Millisecond
)

// errUnread and errFull mean that the connection, or all of them together, hold
// too many unread answers.
var (
	errUnread = errors.New("earlier answers are not read")
	errFull   = errors.New("the server holds too many answers that are not read")
)

// totals are sums over all connections of a Server.
type totals struct {
	calls atomic.Int64        // open streams
	room  *semaphore.Weighted // of maxHeldAll

	mu      sync.Mutex // guards the fields below; taken before meter.mu
	conns   map[*meter]struct{}
	evicted time.Time // when evict last looked
}

// acquire waits for n bytes of room. Meanwhile it closes connections whose
// clients do not read.
func (t *totals) acquire(ctx context.Context, n int64) error {
	if t.room.TryAcquire(n) {
		return nil
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for waiting.Err() == nil {
			t.evict()
			select {
			case <-time.After(fullPause):
			case <-waiting.Done():
			}
		}
	}()
	return t.room.Acquire(ctx, n)
}

// evict closes the connection that holds the most, of those whose clients do
// not read.
func (t *totals) evict() {
	t.mu.Lock()
	now := time.Now()
	if now.Sub(t.evicted) < fullPause {
		t.mu.Unlock()
		return
	}
	t.evicted = now
	var worst *meter
	most := int64(0)
	for m := range t.conns {
		m.mu.Lock()
		if m.held > most && now.Sub(m.moved) >= maxPause {
			worst, most = m, m.held
		}
		m.mu.Unlock()
	}
	t.mu.Unlock()
	if worst != nil {
		_ = worst.Close()
	}
}

// reserve waits until the connection and the server have room for n bytes of
// answers. The calls of a connection take turns in the order of their arrival,
// and so do the connections.
func (m *meter) reserve(ctx context.Context, n int64) error {
	if err := m.turn.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	defer m.turn.Release(1)
	if err := m.room.Acquire(ctx, n); err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	if err := m.total.acquire(ctx, n); err != nil {
		m.room.Release(n)
		return fmt.Errorf("%w: %w", errFull, err)
	}
	return nil
}

// unreserve gives n bytes back.
func (m *meter) unreserve(n int64) {
	m.room.Release(n)
	m.total.room.Release(n)
}
