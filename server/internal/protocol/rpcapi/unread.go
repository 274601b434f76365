package rpcapi

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Limits of the memory for answers that clients do not read. gRPC accepts an
// answer as a whole and then regards the call as ended, whatever happens to the
// bytes. So a call for many IDs reserves room before it takes IDs, and gRPC
// gives it back when the answer has left the process.
const (
	manyOctets = 16 << 10 // size of an answer that reserves room
	maxHeld    = 2 << 20  // of a connection
	maxHeldAll = 16 << 20 // of all connections

	// maxPause is how long a client may not read before its connection is
	// closed, while all of that is in use and others wait for it.
	maxPause = time.Second
)

// totals are sums over all connections of a Server.
type totals struct {
	calls   atomic.Int64        // open ones
	room    *semaphore.Weighted // of maxHeldAll
	waiting atomic.Int64        // calls that wait for room
}

// reserve waits until the connection and the server have room for n bytes of
// answers. The calls of a connection take turns in the order of their arrival,
// and so do the connections.
func (m *meteredConn) reserve(ctx context.Context, n int64) error {
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

// release gives n bytes back.
func (m *meteredConn) release(n int64) {
	m.room.Release(n)
	m.total.room.Release(n)
}

// A trackedMessage is an answer that reports, at least once, when gRPC has sent
// or dropped its bytes.
type trackedMessage struct {
	message proto.Message
	size    int
	gone    func()
}

// track returns an answer for which so many bytes were reserved in a form that
// gRPC can send. They are given back when it has left, or with the connection.
func (m *meteredConn) track(message proto.Message, reserved int64) *trackedMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held == 0 {
		m.lastSent = time.Now()
	}
	m.held += reserved
	if m.closed {
		m.release(reserved) // it will not be sent
	}
	done := false
	return &trackedMessage{message, proto.Size(message), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.closed && !done {
			m.held -= reserved
			m.release(reserved)
		}
		done = true
	}}
}

// A codec is gRPC's codec with support for tracked messages.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal encodes a message.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	t, ok := v.(*trackedMessage)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	pool := mem.DefaultBufferPool()
	buf := pool.Get(t.size)
	out, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*buf)[:0], t.message)
	if err != nil {
		pool.Put(buf)
		t.gone()
		return nil, err
	}
	*buf = out
	r := &reportingPool{pool, t.gone}
	runtime.AddCleanup(r, func(gone func()) { gone() }, t.gone) // gRPC loses messages of a stream that was just reset
	return mem.BufferSlice{mem.NewBuffer(buf, r)}, nil
}

// A reportingPool reports the buffers that it gets back.
type reportingPool struct {
	mem.BufferPool
	gone func()
}

// Put takes a buffer back.
func (r *reportingPool) Put(b *[]byte) {
	r.BufferPool.Put(b)
	r.gone()
}
