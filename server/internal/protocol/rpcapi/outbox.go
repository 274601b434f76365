package rpcapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
	maxHeld   = 2 << 20  // unsent buffers of all streams of a connection

	// maxStalled is how many streams of a connection may end because their client
	// does not read them. Their buffers are freed with the connection.
	maxStalled = 8
)

// costs are the sizes of gRPC's buffers into which messages of Stream are
// encoded.
var costs = [...]int{4 << 10, 16 << 10, maxPiece}

// costOf returns the memory of a message until it is sent.
func costOf(size int) int {
	for _, c := range costs {
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
	limit time.Duration // how long a message may be in it

	room chan struct{} // of size 1: signals that there may be room

	// Guarded by m.mu.
	held  int         // bytes in it
	since []time.Time // when the messages in it were added, the oldest first
	over  bool        // no longer part of m.held
}

func newOutbox(m *meter, limit time.Duration) *outbox {
	if m == nil {
		m = newMeter(nil, meterLimits{})
	}
	return &outbox{m: m, limit: limit, room: make(chan struct{}, 1)}
}

func (o *outbox) signal() {
	select {
	case o.room <- struct{}{}:
	default:
	}
}

// stalled returns errStalled if the oldest message is too old, and otherwise
// when that will be; zero if the outbox is empty. The caller holds o.m.mu.
func (o *outbox) stalled() (at time.Time, err error) {
	if len(o.since) == 0 {
		return at, nil
	}
	at = o.since[0].Add(o.limit)
	if !time.Now().Before(at) {
		return at, errStalled
	}
	return at, nil
}

// wait waits until change receives a value, a message leaves the outbox, or
// ends is closed. It returns errStalled if the oldest message stays for too
// long.
func (o *outbox) wait(ctx context.Context, change, ends <-chan struct{}) error {
	o.m.mu.Lock()
	at, err := o.stalled()
	o.m.mu.Unlock()
	if err != nil {
		return err
	}
	var late <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-change:
	case <-o.room:
	case <-late: // it may have left meanwhile: the next call checks
	case <-ends:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// reserve waits until the outbox and the connection have room for a message of
// the maximum size. send or unreserve must give the room back.
func (o *outbox) reserve(ctx context.Context, stops <-chan struct{}) error {
	defer o.leaveQueue()
	for {
		full := false // the server, and not only the stream or the connection
		o.m.mu.Lock()
		if o.held+maxPiece <= maxOutbox {
			first := len(o.m.queue) == 0 || o.m.queue[0] == o
			if first && o.m.held+maxPiece <= maxHeld {
				if full = !o.m.tryBook(maxPiece); !full {
					o.held, o.m.held = o.held+maxPiece, o.m.held+maxPiece
					o.m.mu.Unlock()
					return nil
				}
			}
			if !slices.Contains(o.m.queue, o) {
				o.m.queue = append(o.m.queue, o)
			}
		}
		o.m.mu.Unlock()
		if full {
			o.m.limits.total.evict()
			time.AfterFunc(fullPause, o.signal)
		}
		if err := o.wait(ctx, nil, stops); err != nil {
			return err
		}
		select {
		case <-stops:
			return draining()
		default:
		}
	}
}

func (o *outbox) leaveQueue() {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if i := slices.Index(o.m.queue, o); i >= 0 {
		o.m.queue = slices.Delete(o.m.queue, i, i+1)
	}
	o.m.wakeQueue()
}

// unreserve returns n bytes that reserve took.
func (o *outbox) unreserve(n int) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	o.give(n)
}

// give returns bytes. The caller holds o.m.mu.
func (o *outbox) give(n int) {
	if o.over {
		return
	}
	o.held -= n
	o.m.held -= n
	o.m.book(-n)
	o.signal()
	o.m.wakeQueue()
}

// add uses n bytes of reserve for a message, and returns it in a form that gRPC
// can send.
func (o *outbox) add(m proto.Message) *tracked {
	size := proto.Size(m)
	cost := costOf(size)
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	o.held += cost - maxPiece
	o.m.held += cost - maxPiece
	o.m.book(cost - maxPiece)
	o.m.pend(cost)
	o.since = append(o.since, time.Now())
	return &tracked{m, size, func() {
		o.m.mu.Lock()
		defer o.m.mu.Unlock()
		o.m.pend(-cost)
		if len(o.since) > 0 {
			o.since = o.since[1:]
		}
		o.give(cost)
	}}
}

// flush waits until all messages have left the outbox.
func (o *outbox) flush(ctx context.Context, stops <-chan struct{}) error {
	for {
		o.m.mu.Lock()
		empty := len(o.since) == 0
		o.m.mu.Unlock()
		select {
		case <-stops:
			return draining()
		default:
		}
		if empty {
			return nil
		}
		if err := o.wait(ctx, nil, stops); err != nil {
			return err
		}
	}
}

// close ends the outbox with its stream. If the client has reset the stream,
// its buffers are freed soon; otherwise they are held until the client reads
// them.
func (o *outbox) close(ctx context.Context) {
	if ctx.Err() == nil {
		return
	}
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	o.m.held -= o.held
	o.m.book(-o.held)
	o.over, o.since = true, nil
	o.m.wakeQueue()
}

// wakeQueue wakes the first stream that waits for room in the connection. The
// caller holds m.mu.
func (m *meter) wakeQueue() {
	if len(m.queue) > 0 {
		m.queue[0].signal()
	}
}

// stall ends a stream that its client does not read. It also closes the
// connection if nothing of it is read, or if too many of its streams stalled.
func (s *Server) stall(m *meter) error {
	if m != nil {
		m.mu.Lock()
		m.stalls++
		end := m.stalls >= maxStalled || time.Since(m.moved) >= s.c.Limits.Write
		m.mu.Unlock()
		if end {
			_ = m.Close()
		}
	}
	return fail(service.Busy, fmt.Sprintf("the client has not read the stream for %v", s.c.Limits.Write), 0)
}

// A tracked is a message that reports when gRPC has sent or dropped its bytes.
type tracked struct {
	m    proto.Message
	size int
	gone func()
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
	return mem.BufferSlice{mem.NewBuffer(buf, reporting{pool, t.gone})}, nil
}

// A reporting pool reports the buffers that it gets back.
type reporting struct {
	mem.BufferPool
	gone func()
}

// Put takes a buffer back.
func (r reporting) Put(b *[]byte) {
	r.BufferPool.Put(b)
	r.gone()
}
