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

// An outbox holds what one stream has encoded and not sent. Its methods are for
// the goroutine of the stream.
type outbox struct {
	m     *meter
	limit time.Duration       // how long it may be full without a message leaving
	room  *semaphore.Weighted // of maxOutbox
	spare bool                // room is reserved for a message

	// Guarded by m.mu.
	held  int       // messages in it
	moved time.Time // when a message left, or was added to an empty outbox
}

// patience returns when the stream has stalled, unless a message leaves before.
func (o *outbox) patience() time.Time {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if o.held == 0 {
		return time.Now().Add(o.limit)
	}
	return o.moved.Add(o.limit)
}

// wait waits until change receives a value, and returns errStalled if messages
// stay for too long. It may return early.
func (o *outbox) wait(ctx context.Context, change <-chan struct{}) error {
	timer := time.NewTimer(time.Until(o.patience()))
	defer timer.Stop()
	select {
	case <-change:
	case <-timer.C:
		if !time.Now().Before(o.patience()) {
			return errStalled
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// acquire waits for n bytes of the outbox.
func (o *outbox) acquire(ctx context.Context, n int64) error {
	for !o.room.TryAcquire(n) {
		patient, cancel := context.WithDeadline(ctx, o.patience())
		err := o.room.Acquire(patient, n)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !time.Now().Before(o.patience()):
			return errStalled
		}
	}
	return nil
}

// reserve waits until the outbox, the connection and the server have room for a
// message of the maximum size. add or close must give the room back.
func (o *outbox) reserve(ctx context.Context) error {
	if err := o.acquire(ctx, maxPiece); err != nil {
		return err
	}
	if err := o.m.reserve(ctx, maxPiece); err != nil {
		o.room.Release(maxPiece)
		return context.Cause(ctx)
	}
	o.spare = true
	return nil
}

// close gives back room that add has not used.
func (o *outbox) close() {
	if o.spare {
		o.m.unreserve(maxPiece)
	}
}

// add uses what reserve took for a message, and returns it in a form that gRPC
// can send.
func (o *outbox) add(message proto.Message) *tracked {
	size := proto.Size(message)
	cost := int64(costOf(size))
	o.spare = false
	o.m.unreserve(maxPiece - cost)
	o.room.Release(maxPiece - cost)
	o.m.mu.Lock()
	if o.held++; o.held == 1 {
		o.moved = time.Now()
	}
	o.m.mu.Unlock()
	return o.m.track(message, size, cost, func() {
		o.held--
		o.moved = time.Now()
		o.room.Release(cost)
	})
}

// stall ends a stream that its client does not read. It also closes the
// connection if nothing of it is read, or if too many of its streams stalled.
func (s *Server) stall(m *meter) error {
	m.mu.Lock()
	m.stalls++
	end := m.stalls >= maxStalled || time.Since(m.moved) >= s.c.Limits.Write
	m.mu.Unlock()
	if end {
		_ = m.Close()
	}
	return fail(service.Busy, fmt.Sprintf("the client has not read the stream for %v", s.c.Limits.Write), 0)
}

// A tracked is a message that reports, at least once, when gRPC has sent or
// dropped its bytes.
type tracked struct {
	m    proto.Message
	size int
	gone func()
}

// track returns a message for which so many bytes were reserved in a form that
// gRPC can send. They are given back when it has left, or with the connection.
// gone is then called with m.mu held.
func (m *meter) track(message proto.Message, size int, reserved int64, gone func()) *tracked {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held == 0 {
		m.moved = time.Now()
	}
	m.held += reserved
	if m.closed {
		m.unreserve(reserved) // it will not be sent
	}
	done := false
	return &tracked{message, size, func() {
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
	t, ok := v.(*tracked)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	pool := mem.DefaultBufferPool()
	buf := pool.Get(costOf(t.size)) // mem never frees very small buffers
	out, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*buf)[:0], t.m)
	if err != nil {
		pool.Put(buf)
		t.gone()
		return nil, err
	}
	*buf = out
	r := &reporting{pool, t.gone}
	runtime.AddCleanup(r, func(gone func()) { gone() }, t.gone) // gRPC loses messages of a stream that was just reset
	return mem.BufferSlice{mem.NewBuffer(buf, r)}, nil
}

// A reporting pool reports the buffers that it gets back.
type reporting struct {
	mem.BufferPool
	gone func()
}

// Put takes a buffer back.
func (r *reporting) Put(b *[]byte) {
	r.BufferPool.Put(b)
	r.gone()
}
