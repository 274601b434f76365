package rpcapi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/firnid/firn/server/internal/service"
)

// Limits of what Stream buffers for clients that do not read. gRPC encodes a
// message of up to 32 KiB into a buffer of that size, and a longer one into 1
// MiB.
const (
	maxPiece  = 32 << 10 // size of a message
	maxOutbox = 64 << 10 // unsent buffers of a stream

	// maxStalled is how many streams of a connection may end because their client
	// does not read them. Their buffers are freed with the connection.
	maxStalled = 8
)

// costOf returns the size of gRPC's buffer for a message of Stream.
func costOf(size int) int {
	for _, c := range []int{4 << 10, 16 << 10, maxPiece} {
		if size <= c {
			return c
		}
	}
	return size
}

var errStalled = errors.New("the client does not read")

// An outbox holds what one stream has encoded and not sent.
type outbox struct {
	meter *meter
	room  *semaphore.Weighted     // of maxOutbox
	stall context.CancelCauseFunc // called when messages stay for too long

	// Guarded by meter.mu.
	held     int64     // bytes of gRPC's buffers
	lastLeft time.Time // when a message left, or was added to an empty outbox
}

// newOutbox makes an outbox, which must be closed. The connection watches it.
func (m *meter) newOutbox(stall context.CancelCauseFunc) *outbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := &outbox{meter: m, room: semaphore.NewWeighted(maxOutbox), stall: stall}
	m.outboxes[o] = struct{}{}
	return o
}

func (o *outbox) close() {
	o.meter.mu.Lock()
	defer o.meter.mu.Unlock()
	delete(o.meter.outboxes, o)
}

// reserve waits until the outbox, the connection and the server have room for a
// message of the maximum size. add or unreserve must give the room back.
func (o *outbox) reserve(ctx context.Context) error {
	if o.room.Acquire(ctx, maxPiece) != nil {
		return context.Cause(ctx)
	}
	if o.meter.reserve(ctx, maxPiece) != nil {
		o.room.Release(maxPiece)
		return context.Cause(ctx)
	}
	return nil
}

// unreserve gives n bytes back.
func (o *outbox) unreserve(n int64) {
	o.room.Release(n)
	o.meter.unreserve(n)
}

// empty waits until all messages have left.
func (o *outbox) empty(ctx context.Context) error {
	if o.room.Acquire(ctx, maxOutbox) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// add uses what reserve took for a message, and returns it in a form that gRPC
// can send.
func (o *outbox) add(message proto.Message) *trackedMessage {
	size := proto.Size(message)
	cost := int64(costOf(size))
	o.unreserve(maxPiece - cost)
	o.meter.mu.Lock()
	if o.held == 0 {
		o.lastLeft = time.Now()
	}
	o.held += cost
	o.meter.mu.Unlock()
	return o.meter.track(message, size, cost, func() {
		o.room.Release(cost)
		o.held -= cost
		o.lastLeft = time.Now()
	})
}

// stall ends a stream that its client does not read. It also closes the
// connection if nothing of it is read, or if too many of its streams stalled.
func (s *Server) stall(m *meter) error {
	m.mu.Lock()
	m.stalls++
	end := m.stalls >= maxStalled || time.Since(m.lastSent) >= s.config.Limits.Write
	m.mu.Unlock()
	if end {
		_ = m.Close()
	}
	return fail(service.Busy, fmt.Sprintf("the client has not read the stream for %v", s.config.Limits.Write), 0)
}

// A trackedMessage is a message that reports, at least once, when gRPC has sent
// or dropped its bytes.
type trackedMessage struct {
	message proto.Message
	size    int
	gone    func()
}

// track returns a message for which so many bytes were reserved in a form that
// gRPC can send. They are given back when it has left, or with the connection.
// gone is then called with m.mu held.
func (m *meter) track(message proto.Message, size int, reserved int64, gone func()) *trackedMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held == 0 {
		m.lastSent = time.Now()
	}
	m.held += reserved
	if m.closed {
		m.unreserve(reserved) // it will not be sent
	}
	done := false
	return &trackedMessage{message, size, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.closed && !done {
			m.held -= reserved
			m.unreserve(reserved)
		}
		if !done {
			gone()
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
	buf := pool.Get(costOf(t.size)) // mem never frees very small buffers
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
