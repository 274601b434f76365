package rpcapi

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
)

// Limits of the memory for unsent answers of all connections. Each connection
// has limits of its own, but a client can have many.
const (
	// maxHeldAll is how many bytes Stream and long answers may hold. Beyond it
	// they wait, and connections whose clients read nothing are closed.
	maxHeldAll = 16 << 20

	// When the limit is reached, a connection may be closed if its client has not
	// read for maxPause. What waits tries again after fullPause.
	maxPause  = time.Second
	fullPause = 50 * time.Millisecond
)

// totals are sums over all connections of a Server. nil counts nothing.
type totals struct {
	calls atomic.Int64 // open streams
	held  atomic.Int64 // bytes reserved for Stream and long answers

	mu      sync.Mutex // guards the fields below; taken before meter.mu
	conns   map[*meter]struct{}
	evicted time.Time // when evict last looked
}

// add and remove register a connection.
func (t *totals) add(m *meter) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		t.conns = make(map[*meter]struct{})
	}
	t.conns[m] = struct{}{}
}

func (t *totals) remove(m *meter) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, m)
}

// evict closes the connection with the most unsent bytes, of those whose
// clients do not read.
func (t *totals) evict() {
	t.mu.Lock()
	now := time.Now()
	if now.Sub(t.evicted) < fullPause {
		t.mu.Unlock()
		return
	}
	t.evicted = now
	var worst *meter
	most := 0
	for m := range t.conns {
		m.mu.Lock()
		if m.unsent > most && now.Sub(m.moved) >= maxPause {
			worst, most = m, m.unsent
		}
		m.mu.Unlock()
	}
	t.mu.Unlock()
	if worst != nil {
		_ = worst.Close()
	}
}

// tryBook reserves n bytes, and reports whether all connections together may
// hold them. The caller holds m.mu.
func (m *meter) tryBook(n int) bool {
	if t := m.limits.total; t != nil && t.held.Load()+int64(n) > maxHeldAll {
		return false
	}
	m.book(n)
	return true
}

// book adds n to the bytes that the connection has reserved. The caller holds
// m.mu.
func (m *meter) book(n int) {
	if t := m.limits.total; t != nil && !m.closed {
		m.booked += n
		t.held.Add(int64(n))
	}
}

// pend adds n to the bytes in messages that gRPC has not sent. The caller holds
// m.mu.
func (m *meter) pend(n int) {
	if m.unsent == 0 {
		m.moved = time.Now()
	}
	m.unsent += n
}

// bookLong waits until a call may hold a long answer of so many bytes. They are
// held until gRPC has sent what tracked returns, or until unbook. m and k may be
// nil.
func (m *meter) bookLong(ctx context.Context, k *call, size int) error {
	if m == nil || k == nil {
		return nil
	}
	for {
		m.mu.Lock()
		ok := m.tryBook(size)
		m.mu.Unlock()
		if ok {
			k.booked = size
			return nil
		}
		m.limits.total.evict()
		select {
		case <-time.After(fullPause):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errFull, ctx.Err())
		}
	}
}

// unbook ends bookLong for a call without an answer. m and k may be nil.
func (m *meter) unbook(k *call) {
	if m == nil || k == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.book(-k.booked)
	k.booked = 0
}

// tracked returns the answer of a call with the bytes of bookLong, in a form
// that gRPC can send.
func (m *meter) tracked(answer proto.Message, k *call) *tracked {
	booked := k.booked
	k.booked = 0
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pend(booked)
	return &tracked{answer, proto.Size(answer), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.pend(-booked)
		m.book(-booked)
	}}
}
