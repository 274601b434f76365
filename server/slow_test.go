package server_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
)

// How long firn serve waits for slow clients, as in docs/http.md, docs/resp.md
// and the limits of package rpcapi.
const (
	slowRequest = 10 * time.Second                // a request of HTTP or a command of RESP, once it has begun
	slowIdle    = 2 * time.Minute                 // between requests of HTTP
	slowPing    = (30 + 20) * time.Second         // gRPC: until the ping, and for its answer
	slowReader  = (10 + 30) * time.Second         // until an answer is given up
	perByte     = 3 * time.Second                 // of a client that is too slow
	perGoodByte = slowRequest / 2 / 1000          // of a client that is slow, but in time
	slowMargin  = lingering + 10*time.Millisecond // for what follows the deadline
)

// A drip writes bytes one by one.
type drip struct {
	*memConn
	every time.Duration
}

func (d drip) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := d.memConn.Write(b[i : i+1]); err != nil {
			return i, err
		}
		time.Sleep(d.every)
	}
	return len(b), nil
}

// TestSlowWriters: a client that sends a byte at a time and is in time gets all
// answers. One that is too slow, or silent, from any byte on is closed in time
// and leaves nothing behind.
func TestSlowWriters(t *testing.T) {
	all := recordings(t)
	tested := 0
	for protocol, session := range all {
		t.Run(protocol, func(t *testing.T) {
			inBubble(t, all, func(t *testing.T, dial func(int) *memConn, clean func(string)) {
				good(t, protocol, session, drip{dial(1 << 20), perGoodByte})
				time.Sleep(lingering)
				clean("in time")
				for i := range len(session) {
					for _, silent := range []bool{false, true} {
						c := dial(1 << 20)
						_, _ = io.WriteString(c, session[:i])
						synctest.Wait()
						begin := time.Now()
						ended := make(chan time.Duration, 1)
						go func() {
							_, _ = io.Copy(io.Discard, c)
							ended <- time.Since(begin)
						}()
						// What was begun may just be in time, and the four bytes that tell what
						// comes next count as idle.
						limit := 2*slowRequest + 5*perByte
						if !silent {
							_, _ = io.WriteString(drip{c, perByte}, session[i:])
						}
						switch {
						case protocol == "grpc" && !silent:
							// Whole frames that come in time are as good as answers to pings.
							limit = perByte*time.Duration(len(session)-i) + slowPing
						case protocol == "grpc" && i >= 4: // it is known to be gRPC
							limit = slowPing
						case protocol == "resp" && silent:
							// It may be silent between commands for as long as it likes.
							time.Sleep(slowRequest)
							_ = c.CloseWrite()
						case silent:
							limit = slowIdle
						}
						if took := <-ended; took > limit+slowMargin {
							t.Errorf("%d of %d bytes and then silent=%v: it was closed after %v, want %v at most", i, len(session), silent, took, limit)
						}
						_ = c.Close()
						time.Sleep(lingering)
						clean(fmt.Sprintf("%d of %d bytes and then silent=%v", i, len(session), silent))
						tested++
					}
				}
			})
		})
	}
	t.Logf("report: slow writers: %d connections whose client is too slow or silent from some byte on are closed in time", tested)
}

// TestAnswersCut: a client that reads a part of a long answer and goes away, or
// does not read on, leaves nothing behind.
func TestAnswersCut(t *testing.T) {
	const most = service.MaxCount
	requests := map[string]string{
		"http text":  fmt.Sprintf("GET /v1/sequencers/orders/next?count=%d HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n", most),
		"http bytes": fmt.Sprintf("POST /v1/sequencers/orders/next?count=%d&format=raw HTTP/1.1\r\nHost: localhost\r\n\r\n", most),
		"metrics":    "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\nGET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"resp array": fmt.Sprintf("NEXT orders %d\r\nNEXT orders %d\r\n", most, most),
		"resp bulk":  fmt.Sprintf("NEXTB orders %d\r\nNEXTB orders %d\r\n", most, most),
		"grpc next": recordCalls(t, func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := firnv1.NewIDsClient(conn).Next(ctx, &firnv1.NextRequest{Sequencer: "orders", Count: most})
			return err
		}),
		"grpc stream": recordCalls(t, func(ctx context.Context, conn *grpc.ClientConn) error {
			stream, err := firnv1.NewIDsClient(conn).Stream(ctx)
			if err != nil {
				return err
			}
			if err := stream.Send(&firnv1.StreamRequest{Sequencer: "orders", Credit: 1 << 20, Batch: 1000}); err != nil {
				return err
			}
			_, err = stream.Recv()
			return err
		}),
	}
	tested := 0
	inBubble(t, recordings(t), func(t *testing.T, dial func(int) *memConn, clean func(string)) {
		for what, request := range requests {
			for n := 0; n < 2<<20; n += 1 + n/3 {
				for _, how := range []string{"closed", "reset", "not read further"} {
					c := dial(4 << 10)
					_, _ = io.WriteString(c, request)
					_ = c.SetReadDeadline(time.Now().Add(lingering)) // where the answer is shorter
					_, _ = io.CopyN(io.Discard, c, int64(n))
					switch how {
					case "closed":
						_ = c.Close()
					case "reset":
						_ = c.Reset()
					default:
						time.Sleep(max(slowIdle, slowReader, slowPing))
						if what[:4] == "resp" && n > 1<<20 {
							_ = c.Close() // all may have been read, and then it is idle
						}
					}
					time.Sleep(slowMargin)
					clean(fmt.Sprintf("%s, %d bytes of the answer, %s", what, n, how))
					_ = c.Close()
					tested++
				}
			}
		}
	})
	t.Logf("report: answers cut: %d connections whose client goes away while the server writes, or does not read on: no goroutine is left", tested)
}
