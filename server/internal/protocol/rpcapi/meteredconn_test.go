package rpcapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// frame is a frame of HTTP/2 with so many bytes.
func frame(kind, flags byte, stream uint32, size int) []byte {
	return []byte(nettest.H2Frame(kind, flags, stream, strings.Repeat("\x00", size)))
}

// TestFrames: heads of frames are read alike in whatever pieces they come.
func TestFrames(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		all := []byte("preface!")
		var want []string
		for range r.IntN(8) {
			kind, flags, stream := byte(r.IntN(10)), byte(r.IntN(64)), r.Uint32()>>1
			all = append(all, frame(kind, flags, stream|uint32(r.IntN(2))<<31, r.IntN(30))...)
			want = append(want, fmt.Sprint(kind, flags, stream))
		}
		for range 20 {
			f := frameScanner{skip: len("preface!")}
			var got []string
			for rest := all; len(rest) > 0; {
				n := 1 + r.IntN(min(len(rest), 40))
				f.scan(rest[:n], func(kind, flags byte, stream uint32) { got = append(got, fmt.Sprint(kind, flags, stream)) })
				rest = rest[n:]
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	}
}

// within returns the context of a call, as tap makes it.
func within(ctx context.Context, s *Server) context.Context {
	return context.WithValue(ctx, callKey{}, &call{conn: s.newMeteredConn(new(net.TCPConn)), ctx: ctx, creds: new(auth.Credentials)})
}

// TestReserve: calls reserve room in the order of their arrival. A cancelled
// call leaves no gap, a new one does not overtake those that wait, and a closed
// connection gives everything back.
func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Config{Front: service.Front{Backend: static(t, "default")}})
		m := s.newMeteredConn(new(net.TCPConn))
		const size = maxHeld / 4
		var sent []*trackedMessage
		send := func() { sent = append(sent, m.track(nil, size)) }
		for range maxHeld / size {
			must.Do(t, m.reserve(t.Context(), size))
			send()
		}
		var order []int
		for i := range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				err := m.reserve(ctx, size)
				if i%4 == 1 {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("call %d: %v, want the context's error", i, err)
					}
					return
				}
				order = append(order, i)
				send()
			}()
			synctest.Wait()
			if i%4 == 1 {
				cancel()
				synctest.Wait()
			}
		}
		for len(order) < 15 {
			first := sent[0]
			sent = sent[1:]
			first.gone()
			synctest.Wait()
		}
		if want := []int{0, 2, 3, 4, 6, 7, 8, 10, 11, 12, 14, 15, 16, 18, 19}; !slices.Equal(order, want) {
			t.Errorf("they begin in the order %v, want %v", order, want)
		}
		if s.total.room.TryAcquire(maxHeldAll - maxHeld + 1) {
			t.Errorf("the connection holds less than %d bytes", maxHeld)
		}
		// A call that ends while it waits for the room of all connections
		// leaves none behind in its own.
		other := s.newMeteredConn(new(net.TCPConn))
		if !s.total.room.TryAcquire(maxHeldAll - maxHeld) {
			t.Fatal("the other connections have no room")
		}
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := other.reserve(ctx, maxHeld); err == nil {
				t.Error("more was reserved than there is")
			}
			cancel()
			if !other.room.TryAcquire(maxHeld) || s.total.waiting.Load() != 0 {
				t.Fatalf("a call that has ended keeps room of its connection, or waits: %d", s.total.waiting.Load())
			}
			other.room.Release(maxHeld)
		}
		s.total.room.Release(maxHeldAll - maxHeld)
		_ = m.Close()
		sent[0].gone()
		if !s.total.room.TryAcquire(maxHeldAll) {
			t.Error("a closed connection holds bytes")
		}
	})
}

// TestRoomForOthers: a connection whose client reads nothing for a while closes
// if others wait for the room that it holds.
func TestRoomForOthers(t *testing.T) {
	m := NewServer(Config{Front: service.Front{Backend: newOpen()}}).newMeteredConn(new(net.TCPConn))
	m.track(nil, 1)
	for waiting, want := range []bool{false, true} {
		m.total.waiting.Store(int64(waiting))
		if got := m.endLateCalls(time.Now().Add(maxPause)); got != want {
			t.Errorf("%d calls wait: it closes: %t, want %t", waiting, got, want)
		}
	}
}

// TestLostMessage: what a message holds is given back if gRPC loses it.
func TestLostMessage(t *testing.T) {
	m := NewServer(Config{Front: service.Front{Backend: newOpen()}}).newMeteredConn(new(net.TCPConn))
	must.Do(t, m.reserve(t.Context(), maxHeld))
	must.Get(newCodec().Marshal(m.track(new(firnv1.NextResponse), maxHeld)))(t)
	for !m.room.TryAcquire(maxHeld) { // ends with the test's time
		runtime.GC()
	}
}

// TestManyLongAnswers: a client that reads gets all that it asks for, however
// much at once.
func TestManyLongAnswers(t *testing.T) {
	s := newOpen()
	ids := firnv1.NewIDsClient(serve(t, Config{Front: service.Front{Backend: s}}))
	const calls = 100
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if r, err := ids.Next(t.Context(), &firnv1.NextRequest{Count: service.MaxCount / 10}); err != nil || len(r.Ids) != service.MaxCount/10 {
				t.Errorf("%d IDs, %v", len(r.GetIds()), err)
			}
		})
	}
	all.Wait()
}

// TestUnreadAnswers: a client that does not read its answers gets an error when
// it requests more, and no ID is taken; it can always get a short answer.
func TestUnreadAnswers(t *testing.T) {
	s := newOpen()
	server := NewServer(Config{Front: service.Front{Backend: s, RequestTimeout: 50 * time.Millisecond}})
	ctx := within(t.Context(), server)
	must.Do(t, callOf(ctx).conn.reserve(ctx, maxHeld))
	_, err := server.Next(ctx, &firnv1.NextRequest{Count: manyOctets/8 + 1})
	if err == nil || !strings.Contains(err.Error(), "earlier answers were not read") || s.given.Load() != 0 {
		t.Errorf("%v, and %d IDs were taken", err, s.given.Load())
	}
	for _, q := range []*firnv1.NextRequest{{Count: manyOctets / 8}, {Count: service.MaxCount, Form: firnv1.Form_FORM_RUNS}} {
		if _, err := server.Next(ctx, q); err != nil {
			t.Errorf("%v: %v", q, err)
		}
	}
}

// TestMeterCalls: streams are counted once, whichever side ends them, and no
// longer when their connection is closed.
func TestMeterCalls(t *testing.T) {
	s := NewServer(Config{Front: service.Front{Backend: static(t, "default")}})
	m := s.newMeteredConn(new(net.TCPConn))
	want := func(when string, n int64) {
		t.Helper()
		if got := s.total.calls.Load(); got != n {
			t.Errorf("%s: %d calls, want %d", when, got, n)
		}
	}
	for stream := uint32(1); stream < 20; stream += 2 {
		m.received(frameHeaders, 4, stream)
	}
	m.received(frameHeaders, 5, 19) // trailers
	want("ten have begun", 10)
	m.sent(frameHeaders, 5, 1)
	m.received(frameReset, 0, 1)
	m.sent(frameReset, 0, 3)
	m.sent(frameHeaders, 5, 3)
	m.received(frameReset, 0, 99)
	want("two have ended, each twice", 8)
	_ = m.Close()
	want("the connection is closed", 0)
	m.received(frameHeaders, 4, 101)
	m.sent(frameHeaders, 5, 5)
	_ = m.Close()
	want("and what comes later", 0)
}

// TestManyCalls: while very many calls are open, each connection may have a
// few, so that every client can still make some.
func TestManyCalls(t *testing.T) {
	s := NewServer(Config{Front: service.Front{Backend: newOpen()}})
	m := s.newMeteredConn(new(net.TCPConn))
	for stream := uint32(1); stream <= 2*fewCalls+1; stream += 2 {
		for _, row := range []struct {
			others int64
			want   bool
		}{{0, true}, {manyCalls, len(m.open) < fewCalls}} {
			m.received(frameHeaders, 4, stream)
			s.total.calls.Add(row.others)
			k := &call{conn: m}
			if err := m.admit(k, true); (err == nil) != row.want || err != nil && kindOf(err) != service.Busy {
				t.Errorf("call %d beside %d others: %v, want it admitted: %t", stream/2+1, row.others, err, row.want)
			}
			s.total.calls.Add(-row.others)
		}
	}
}

// TestControls: a client that sends SETTINGS or PING without reading answers
// loses its connection; one that reads keeps it.
func TestControls(t *testing.T) {
	settings := func(n int) []byte { return frame(frameSettings, 0, 0, n*settingLen) }
	ping := frame(framePing, 0, 0, 8)
	many := slices.Repeat(ping, maxControls)
	for _, row := range []struct {
		what   string
		steps  []any // bytes received; the time that passes; nil for an answer
		closed bool
	}{
		{"settings of all kinds", []any{settings(maxSettings)}, false},
		{"more", []any{settings(maxSettings + 1)}, true},
		{"pings", []any{many}, false},
		{"one more", []any{many, ping}, true},
		{"settings and pings", []any{many, settings(1)}, true},
		{"resets", []any{slices.Repeat(frame(frameReset, flagAck, 1, 4), maxControls+1)}, true},
		{"an answer in between", []any{many, nil, many}, false},
		{"time in between", []any{many, controlWindow + 1, many}, false},
		{"too little of it", []any{many, controlWindow, ping}, true},
		{"acknowledgements", []any{slices.Repeat(append(frame(framePing, flagAck, 0, 8), frame(frameSettings, flagAck, 0, 0)...), 100)}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := NewServer(Config{Front: service.Front{Backend: newOpen()}}).newMeteredConn(new(net.TCPConn))
			m.in.skip = 0
			for _, step := range row.steps {
				switch step := step.(type) {
				case []byte:
					m.in.scan(step, m.received)
				case time.Duration:
					time.Sleep(step)
				default:
					m.out.scan(frame(frameHeaders, 0, 1, 0), m.sent)
				}
			}
			if m.closed != row.closed {
				t.Errorf("%s: closed is %v, want %v", row.what, m.closed, row.closed)
			}
		})
	}
}

// A keptConn keeps what is written.
type keptConn struct {
	*net.TCPConn
	sent bytes.Buffer
}

func (k *keptConn) Write(b []byte) (int, error)    { return k.sent.Write(b) }
func (*keptConn) SetWriteDeadline(time.Time) error { return nil }

// TestGoAway: a connection whose certificate was refused gets GOAWAY once: not
// inside a frame or a header block, and not after gRPC's own, which can name an
// earlier stream.
func TestGoAway(t *testing.T) {
	const end = flagEndHeaders
	answer := frame(frameHeaders, end, 1, 3)
	for _, row := range []struct {
		what   string
		writes [][]byte
		after  int // the write that it follows, from 1; 0 for none
	}{
		{"an answer", [][]byte{answer, answer}, 1},
		{"half a head", [][]byte{answer[:5], answer[5:], answer}, 2},
		{"half a frame", [][]byte{answer[:10], answer[10:], answer}, 2},
		{"a header block of three frames", [][]byte{frame(frameHeaders, flagEndStream, 1, 3),
			frame(frameContinuation, 0, 1, 3), frame(frameContinuation, end, 1, 3), answer}, 3},
		{"GOAWAY of gRPC", [][]byte{append(slices.Clone(answer), frame(frameGoAway, 0, 0, 8)...), answer}, 0},
	} {
		conn := new(keptConn)
		m := NewServer(Config{Front: service.Front{Backend: newOpen()}}).newMeteredConn(conn)
		m.outdated.Store(true)
		var want bytes.Buffer
		for i, b := range row.writes {
			must.Get(m.Write(b))(t)
			want.Write(b)
			if i+1 == row.after {
				want.WriteString(goAway)
			}
		}
		if !bytes.Equal(conn.sent.Bytes(), want.Bytes()) {
			t.Errorf("%s: sent %q, want %q", row.what, conn.sent.Bytes(), want.Bytes())
		}
	}
}
