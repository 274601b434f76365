package rpcapi

import (
	"context"
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
	// while all of that is in use and others wait for it.
	maxPause = time.Second
)

// totals are sums over all connections of a Server.
type totals struct {
	calls   atomic.Int64        // open streams
	room    *semaphore.Weighted // of maxHeldAll
	waiting atomic.Int64        // calls that wait for room
}

// reserve waits until the connection and the server have room for n bytes of
// answers. The calls of a connection take turns in the order of their arrival,
// and so do the connections.
func (m *meter) reserve(ctx context.Context, n int64) error {
	if err := m.room.Acquire(ctx, n); err != nil {
		return err
	}
	if m.total.room.TryAcquire(n) {
		return nil
	}
	m.total.waiting.Add(1)
	defer m.total.waiting.Add(-1)
	if err := m.total.room.Acquire(ctx, n); err != nil {
		m.room.Release(n)
		return err
	}
	return nil
}

// unreserve gives n bytes back.
func (m *meter) unreserve(n int64) {
	m.room.Release(n)
	m.total.room.Release(n)
}
