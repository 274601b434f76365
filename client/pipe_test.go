package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A readFunc is an io.Reader.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

const (
	oneCommand = "*3\r\n$5\r\nNEXTR\r\n$1\r\na\r\n$1\r\n1\r\n"
	longWait   = 5 * time.Second
)

var (
	oneAnswer = runsRESP([3]string{"0000000000000001", "1", "1"})
	wantOne   = expectation{count: 1, size: 8}
)

// askOne asks for an ID.
func (p *pipe) askOne(ctx context.Context) error {
	a, err := p.ask(ctx, wantOne, []byte(oneCommand))
	if err == nil && len(a.spans) != 1 {
		return errors.New("an answer without IDs")
	}
	return err
}

// pipeInMemory returns a pipe, and the other end of its connection, which
// discards what is sent.
func pipeInMemory() (*pipe, net.Conn) {
	near, far := net.Pipe()
	go io.Copy(io.Discard, far)
	return newPipe(near, bufio.NewReader(near), longWait), far
}

// A pipe that ends while an answer is read: the call that reads for itself uses
// it, and the owner does not, whose callers have been told to ask elsewhere.
func TestPipeEndsDuringAnswer(t *testing.T) {
	for _, byOwner := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			defer far.Close()
			go io.Copy(io.Discard, far)
			var p *pipe
			arrive := make(chan struct{})
			rest := oneAnswer
			p = newPipe(near, bufio.NewReader(readFunc(func(b []byte) (n int, err error) {
				if rest == oneAnswer {
					<-arrive
					b = b[:1]
				} else {
					p.fail(net.ErrClosed)
				}
				n = copy(b, rest)
				rest = rest[n:]
				return n, nil
			})), longWait)
			var all sync.WaitGroup
			all.Go(p.read)
			if byOwner {
				time.Sleep(2 * tick) // the owner waits for the end of the connection
			}
			all.Go(func() {
				if err := p.askOne(t.Context()); byOwner != errors.Is(err, errElsewhere) || !byOwner && err != nil {
					t.Errorf("by the owner: %t: %v", byOwner, err)
				}
			})
			synctest.Wait()
			close(arrive)
			all.Wait()
		})
	}
}

// An answer that came with the switch to RESP is not given to the first
// request.
func TestUnaskedWithTheSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		go io.Copy(io.Discard, far)
		r := bufio.NewReader(io.MultiReader(strings.NewReader(oneAnswer), near))
		if _, err := r.Peek(1); err != nil {
			t.Fatal(err)
		}
		p := newPipe(near, r, longWait)
		var all sync.WaitGroup
		all.Go(p.read)
		synctest.Wait()
		if err := p.askOne(t.Context()); err != errElsewhere {
			t.Errorf("the first request: %v, want errElsewhere", err)
		}
		if !p.hasEnded() {
			t.Error("the pipe has not ended")
		}
		p.fail(net.ErrClosed)
		all.Wait()
	})
}

// A pipe that is to be replaced ends after the last answer, whether the caller
// or the owner reads it.
func TestRetiredPipe(t *testing.T) {
	for _, calls := range []int{0, 1, 3} {
		synctest.Test(t, func(t *testing.T) {
			p, far := pipeInMemory()
			defer far.Close()
			var all sync.WaitGroup
			all.Go(p.read)
			for range calls {
				all.Go(func() {
					if err := p.askOne(t.Context()); err != nil {
						t.Errorf("%d calls: %v", calls, err)
					}
				})
				synctest.Wait()
			}
			p.retire()
			if err := p.askOne(t.Context()); err != errElsewhere {
				t.Errorf("%d calls: a call after retire: %v, want errElsewhere", calls, err)
			}
			for i := range calls {
				if p.hasEnded() {
					t.Fatalf("%d calls: it has ended after %d answers", calls, i)
				}
				_, _ = io.WriteString(far, oneAnswer)
				synctest.Wait()
			}
			if !p.hasEnded() {
				t.Errorf("%d calls: it has not ended after the last answer", calls)
			}
			all.Wait()
		})
	}
}

// Slow answers are not a stuck pipe while each comes in time. If one does not,
// the calls behind it ask elsewhere, and those that have left disturb nothing.
func TestSlowPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, far := pipeInMemory()
		defer far.Close()
		var all sync.WaitGroup
		all.Go(p.read)
		ask := func(ctx context.Context, want error) {
			all.Go(func() {
				if err := p.askOne(ctx); err != want {
					t.Errorf("%v, want %v", err, want)
				}
			})
			synctest.Wait()
		}
		answer := func() {
			_, _ = io.WriteString(far, oneAnswer)
			synctest.Wait()
		}
		for range 6 {
			ask(t.Context(), nil)
		}
		for range 6 {
			time.Sleep(stuckAfter - time.Millisecond)
			answer()
		}
		hasty, cancel := context.WithTimeout(t.Context(), stuckAfter/2)
		defer cancel()
		ask(hasty, context.DeadlineExceeded) // reads
		ask(hasty, context.DeadlineExceeded)
		ask(t.Context(), errElsewhere)
		time.Sleep(2 * stuckAfter)
		ask(t.Context(), errElsewhere) // is not even sent
		for range 3 {
			answer()
		}
		ask(t.Context(), nil)
		answer()
		if p.hasEnded() {
			t.Error("it has ended")
		}
		p.fail(net.ErrClosed)
		all.Wait()
	})
}

// Bytes that another goroutine is about to read do not end a pipe.
func TestUnreadWhileReading(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	p := newPipe(near, bufio.NewReader(near), longWait)
	first := &query{want: wantOne}
	if !p.send(first, []byte(oneCommand)) {
		t.Fatal("a new pipe sends nothing")
	}
	_, _ = io.WriteString(far, oneAnswer)
	for seesUnread && !isUnread(p.raw) {
		runtime.Gosched()
	}
	if !p.send(&query{want: wantOne}, []byte(oneCommand)) {
		t.Error("a request behind an answer that has arrived was not sent")
	}
	p.fail(net.ErrClosed)
	p.read()
}

// A call that gives up in the middle of a TLS record leaves the record to the
// owner of the pipe.
func TestCancelledInARecord(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	server.Close()
	for _, first := range []int{1, 5, 6, 20} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			halves := &halvingConn{Conn: far}
			secure := tls.Client(near, &tls.Config{InsecureSkipVerify: true})
			answer := make(chan struct{})
			var all sync.WaitGroup
			all.Go(func() {
				defer far.Close()
				c := tls.Server(halves, &tls.Config{Certificates: server.TLS.Certificates})
				if err := c.Handshake(); err != nil {
					t.Error(err)
				}
				all.Go(func() { _, _ = io.Copy(io.Discard, c) })
				for range answer {
					_, _ = io.WriteString(c, oneAnswer)
				}
			})
			if err := secure.Handshake(); err != nil {
				t.Fatal(err)
			}
			p := newPipe(secure, bufio.NewReader(secure), longWait)
			all.Go(p.read)
			for i := range 3 {
				halves.first.Store(int64(first))
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				all.Go(func() { answer <- struct{}{} })
				if err := p.askOne(ctx); err != context.DeadlineExceeded {
					t.Errorf("%d bytes, %d: %v, want DeadlineExceeded", first, i, err)
				}
				time.Sleep(100 * time.Millisecond)
				halves.first.Store(0)
				all.Go(func() { answer <- struct{}{} })
				if err := p.askOne(t.Context()); err != nil {
					t.Errorf("%d bytes, %d: the next call: %v", first, i, err)
				}
			}
			if p.hasEnded() {
				t.Errorf("%d bytes: the pipe has ended", first)
			}
			close(answer)
			p.fail(net.ErrClosed)
			all.Wait()
		})
	}
}

// A halvingConn pauses within its writes, after the first bytes.
type halvingConn struct {
	net.Conn
	first atomic.Int64 // 0 means no pause
}

func (c *halvingConn) Write(b []byte) (int, error) {
	first := int(c.first.Load())
	if first == 0 || first >= len(b) {
		return c.Conn.Write(b)
	}
	n, err := c.Conn.Write(b[:first])
	if err != nil {
		return n, err
	}
	time.Sleep(50 * time.Millisecond)
	m, err := c.Conn.Write(b[first:])
	return n + m, err
}
