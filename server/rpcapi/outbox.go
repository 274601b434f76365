package rpcapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that is wrapped
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/firnid/firn/server/service"
)

// Limits of what Stream holds for clients that do not read. gRPC encodes a
// message of up to 32 KiB into a buffer of its size, and a longer one into 1
// MiB.
const (
	maxPiece  = 32 << 10 // bytes of a message
	maxOutbox = 64 << 10 // bytes of buffers that a stream has not sent
	maxHeld   = 2 << 20  // the same of all streams of a connection

	// maxStalled is how many streams of a connection may end because their client
	// does not read them. What they hold is freed with the connection.
	maxStalled = 8
)

// costs are the sizes of the buffers of gRPC that messages of Stream are
// encoded into.
var costs = [...]int{4 << 10, 16 << 10, maxPiece}

// costOf is what a message of a size costs while it is not sent.
func costOf(size int) int {
	for _, c := range costs {
		if size <= c {
			return c
		}
	}
	return size
}

var errStalled = errors.New("the client does not read")

// An outbox is what one stream has encoded and not sent. Its methods are for
// the goroutine of the stream.
type outbox struct {
	m     *meter
	limit time.Duration // for which a message may be in it

	room chan struct{} // of size 1: there may be room now

	// Guarded by m.mu.
	held  int         // bytes
	since []time.Time // when the messages in it were sent, the oldest first
	over  bool        // it is not part of m.held any more
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

// stalled returns errStalled if the oldest message is older than it may be, and
// otherwise when that will be; zero if the outbox is empty. Its caller holds
// o.m.mu.
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

// wait waits until change gets a value, a message leaves the outbox, or ends is
// closed. It returns errStalled if the oldest message stays for too long.
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
	case <-late: // it may have gone meanwhile: the next call sees
	case <-ends:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// reserve waits until there is room for a message of the most bytes, in the
// outbox and in those of the connection. The room must be given back, by send
// or unreserve.
func (o *outbox) reserve(ctx context.Context, stops <-chan struct{}) error {
	defer o.leaveQueue()
	for {
		o.m.mu.Lock()
		if o.held+maxPiece <= maxOutbox {
			first := len(o.m.queue) == 0 || o.m.queue[0] == o
			if first && o.m.held+maxPiece <= maxHeld {
				o.held, o.m.held = o.held+maxPiece, o.m.held+maxPiece
				o.m.mu.Unlock()
				return nil
			}
			if !slices.Contains(o.m.queue, o) {
				o.m.queue = append(o.m.queue, o)
			}
		}
		o.m.mu.Unlock()
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

// unreserve gives back n bytes of what reserve took.
func (o *outbox) unreserve(n int) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	o.give(n)
}

// give gives bytes back. Its caller holds o.m.mu.
func (o *outbox) give(n int) {
	if o.over {
		return
	}
	o.held -= n
	o.m.held -= n
	o.signal()
	o.m.wakeQueue()
}

// add makes a message of what reserve took, and returns it as gRPC can send it.
func (o *outbox) add(m proto.Message) *tracked {
	size := proto.Size(m)
	cost := costOf(size)
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	o.held += cost - maxPiece
	o.m.held += cost - maxPiece
	o.since = append(o.since, time.Now())
	return &tracked{m, size, func() {
		o.m.mu.Lock()
		defer o.m.mu.Unlock()
		if len(o.since) > 0 {
			o.since = o.since[1:]
		}
		o.give(cost)
	}}
}

// flush waits until all messages have left.
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

// close ends the outbox when its stream does. What a stream held whose client
// has reset it is freed soon; otherwise it is held until the client reads it.
func (o *outbox) close(ctx context.Context) {
	if ctx.Err() == nil {
		return
	}
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	o.m.held -= o.held
	o.over, o.since = true, nil
	o.m.wakeQueue()
}

// wakeQueue wakes the first stream that waits for room in the connection. Its
// caller holds m.mu.
func (m *meter) wakeQueue() {
	if len(m.queue) > 0 {
		m.queue[0].signal()
	}
}

// stall ends a stream whose client does not read it. The connection ends with
// it if nothing of it is read, or if that is so of too many of its streams.
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

// A codec is that of gRPC, for tracked messages, too.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal encodes a message.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	t, ok := v.(*tracked)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	pool := mem.DefaultBufferPool()
	buf := pool.Get(costOf(t.size)) // as mem frees none that is very small
	out, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*buf)[:0], t.m)
	if err != nil {
		pool.Put(buf)
		t.gone()
		return nil, err
	}
	*buf = out
	return mem.BufferSlice{mem.NewBuffer(buf, reporting{pool, t.gone})}, nil
}

// A reporting is a pool that reports what it is given.
type reporting struct {
	mem.BufferPool
	gone func()
}

// Put takes a buffer back.
func (r reporting) Put(b *[]byte) {
	r.BufferPool.Put(b)
	r.gone()
}
