package client

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// How long the answers of a pipe may take.
const (
	// After stuckAfter without an answer, what waits behind the first request of
	// a pipe goes elsewhere: a server answers in order, and so a request that
	// waits for its IDs holds up those of other sequencers.
	stuckAfter = 250 * time.Millisecond

	// A pipe without requests is closed after idleAfter, before something on the
	// way forgets it.
	idleAfter = 90 * time.Second

	// tick is how often a pipe that is in use looks at the time.
	tick = stuckAfter / 2
)

// maxInLine is how many requests can wait for their answers in a pipe. They fit
// into what a connection buffers, so that no caller waits to send.
const maxInLine = 128

// errElsewhere is the error of a request that the pipe has no answer to, and
// that is to be sent over HTTP. It may have cost its IDs.
var errElsewhere = errors.New("client: not answered over RESP")

// A pipe is a connection that speaks RESP. All callers send their requests
// through it without waiting for the answers to earlier ones.
//
// Its owner calls read, which returns when the connection has ended. Callers
// write, one of them for all that have something to send.
type pipe struct {
	conn    net.Conn
	r       *bufio.Reader
	timeout time.Duration // for an answer
	senders sync.WaitGroup

	mu      sync.Mutex // guards what follows; not held over I/O
	line    []*query   // whose answers have not come, the oldest first
	out     []byte     // what is to be sent
	spare   []byte     // the buffer that was sent last
	sending bool       // somebody sends
	used    time.Time  // the last time that a request was put in line
	moved   time.Time  // when the first in line became it
	asleep  bool       // the timer is that of a pipe without requests
	retired bool       // it ends when nobody waits any more
	err     error      // why it has ended
	timer   *time.Timer
}

// A query is a request in a pipe.
type query struct {
	want expectation
	gone bool       // its caller has been told that there is no answer; guarded by the pipe's mu
	done chan reply // holds one
}

// newPipe makes a pipe of a connection, of which r may have read the first
// bytes.
func newPipe(conn net.Conn, r *bufio.Reader, timeout time.Duration) *pipe {
	p := &pipe{conn: conn, r: r, timeout: timeout, used: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(tick, p.look)
	return p
}

// ask sends a command and waits for its answer until ctx is done. A caller that
// gives up leaves its place in line, where its answer is thrown away.
func (p *pipe) ask(ctx context.Context, want expectation, command []byte) (reply, error) {
	q := &query{want: want, done: make(chan reply, 1)}
	if !p.send(q, command) {
		return reply{}, errElsewhere
	}
	select {
	case a := <-q.done:
		return a, a.err
	case <-ctx.Done():
		return reply{}, ctx.Err()
	}
}

// send puts a query in line and sends its command, unless it is better sent
// elsewhere.
func (p *pipe) send(q *query, command []byte) bool {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || p.retired || len(p.line) >= maxInLine || p.isStuck(now) {
		return false
	}
	p.used = now
	if len(p.line) == 0 {
		p.moved = now
	}
	p.line = append(p.line, q)
	p.out = append(p.out, command...)
	if p.asleep {
		p.asleep = false
		p.timer.Reset(tick)
	}
	if !p.sending {
		p.sending = true
		p.flush(8)
	}
	return true
}

// flush sends what there is, and what others add meanwhile. After some rounds a
// goroutine continues, so that no caller works for others for long. The caller
// holds mu and has set sending.
func (p *pipe) flush(rounds int) {
	for ; len(p.out) > 0 && p.err == nil; rounds-- {
		if rounds == 0 {
			p.senders.Go(func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.flush(-1)
			})
			return
		}
		b := p.out
		p.out = p.spare[:0]
		p.mu.Unlock()
		_, err := p.conn.Write(b)
		p.mu.Lock()
		p.spare = b
		if err != nil {
			p.end(err)
		}
	}
	p.sending = false
}

// read hands the answers to those that wait for them, until the connection
// ends.
func (p *pipe) read() {
	for p.readOne() {
	}
	_ = p.conn.Close()
	p.senders.Wait()
}

// readOne reads an answer, and reports whether there may be more.
func (p *pipe) readOne() bool {
	if _, err := p.r.Peek(1); err != nil {
		p.fail(err)
		return false
	}
	p.mu.Lock()
	if len(p.line) == 0 {
		p.mu.Unlock()
		p.fail(errors.New("an answer that was not asked for"))
		return false
	}
	q := p.line[0] // stays there until its answer is there as a whole
	p.mu.Unlock()
	a, err := readReply(p.r, q.want)
	if err != nil {
		p.fail(err)
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return false // q has been told
	}
	p.line = p.line[1:]
	p.moved = time.Now()
	if !q.gone {
		q.done <- a
	}
	if p.retired && len(p.line) == 0 {
		p.end(net.ErrClosed)
		return false
	}
	return true
}

// isStuck reports whether the first in line has waited for too long.
func (p *pipe) isStuck(now time.Time) bool {
	return len(p.line) > 0 && now.Sub(p.moved) >= stuckAfter
}

// look is what the timer does.
func (p *pipe) look() {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return
	case len(p.line) == 0 && now.Sub(p.used) >= idleAfter:
		p.end(errors.New("it was not used"))
		return
	case len(p.line) == 0 && now.Sub(p.used) >= tick:
		p.asleep = true
		p.timer.Reset(idleAfter - now.Sub(p.used))
		return
	case len(p.line) > 0 && now.Sub(p.moved) >= p.timeout:
		p.end(errors.New("no answer came in time"))
		return
	case p.isStuck(now):
		for _, q := range p.line[1:] {
			q.tell()
		}
	}
	p.timer.Reset(tick)
}

// tell has a query sent elsewhere. The caller holds the pipe's mu.
func (q *query) tell() {
	if !q.gone {
		q.gone = true
		q.done <- reply{err: errElsewhere}
	}
}

// retire ends the pipe when all that wait have their answers.
func (p *pipe) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	if len(p.line) == 0 {
		p.end(net.ErrClosed)
	}
}

// fail ends the pipe.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(err)
}

// end ends the pipe: read returns, and what waits is sent elsewhere. The caller
// holds mu.
func (p *pipe) end(err error) {
	if p.err != nil {
		return
	}
	p.err = err
	p.timer.Stop()
	// Close would wait for TLS to say goodbye; read does that.
	_ = p.conn.SetDeadline(time.Unix(1, 0))
	for _, q := range p.line {
		q.tell()
	}
	p.line = nil
}
