package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// Limits of time for the answers of a pipe.
const (
	// A server answers in order, so a request that waits for its IDs delays
	// those of other sequencers. If there is no answer for stuckAfter, the
	// requests behind the first one in a pipe are sent elsewhere.
	stuckAfter = 250 * time.Millisecond

	// A pipe without requests is closed after idleAfter, before a device on the
	// network path drops it.
	idleAfter = 90 * time.Second

	// tick is how often a pipe in use checks these limits.
	tick = stuckAfter / 2
)

// maxInLine is the maximum size in bytes of the commands that wait for their
// answers. They fit into the system's buffers for a connection, so that sending
// does not wait for the server to read.
const maxInLine = 8 << 10

// past is a deadline that ends reads and writes at once.
var past = time.Unix(1, 0)

// errElsewhere is the error of a request that the pipe cannot answer, and that
// should be sent over HTTP instead. The server may have made IDs for it.
var errElsewhere = errors.New("client: not answered over RESP")

// errUnasked is the reason why a pipe ends on which more arrives than was asked
// for, or whose server closes it.
var errUnasked = errors.New("an answer without a request")

// A pipe is a connection that speaks RESP. All callers send their requests
// through it without waiting for the answers to earlier ones.
//
// Callers write; one of them writes for all that have something to send. A
// caller that finds no other in line also reads its own answer, because waking
// another goroutine takes longer than the request itself. All other answers are
// read by the owner of the pipe. It calls read, which returns when the
// connection has ended.
//
// Answers do not name their requests. So the pipe ends if more arrives than was
// asked for: a later request would take it for its answer.
type pipe struct {
	conn    net.Conn
	raw     syscall.RawConn // of conn, without TLS; nil if it has none
	r       *bufio.Reader
	timeout time.Duration // of a request: the pipe outlasts its first one
	senders sync.WaitGroup
	turn    chan struct{} // tells the owner to read; holds one
	ended   chan struct{} // closed by end

	mu      sync.Mutex // guards the fields below; not held while I/O waits
	line    []*query   // queries without an answer, the oldest first
	load    int        // bytes of their commands
	out     []byte     // bytes to send
	spare   []byte     // the buffer that was sent last
	sending bool       // a caller is sending
	reading bool       // a caller or the owner reads: always, unless seesUnread and the line is empty
	used    time.Time  // when a request was last added to the line
	moved   time.Time  // when the first in line became the first
	asleep  bool       // the timer is that of a pipe without requests
	retired bool       // it ends when no caller waits any more
	err     error      // why it has ended
	timer   *time.Timer
}

// A query is a request in a pipe.
type query struct {
	want expectation
	size int        // of its command, in bytes
	gone bool       // its caller knows that there is no answer; guarded by the pipe's mu
	done chan reply // has room for one; nil if its caller reads
}

// newPipe makes a pipe from a connection, of which r may have read the first
// bytes.
func newPipe(conn net.Conn, r *bufio.Reader, timeout time.Duration) *pipe {
	p := &pipe{conn: conn, r: r, timeout: timeout, turn: make(chan struct{}, 1), ended: make(chan struct{}), used: time.Now()}
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if c, ok := conn.(syscall.Conn); ok {
		p.raw, _ = c.SyscallConn()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(tick, p.look)
	if !seesUnread {
		p.letOwnerRead()
	}
	return p
}

// letOwnerRead makes the owner read. The caller holds mu.
func (p *pipe) letOwnerRead() {
	p.reading = true
	p.turn <- struct{}{}
}

// isUnread reports whether something has arrived in a pipe from which no
// goroutine reads. The caller holds mu.
func (p *pipe) isUnread() bool {
	if p.r.Buffered() > 0 { // it came with the switch to RESP
		return true
	}
	if _, ok := p.conn.(*tls.Conn); ok { // it may hold what it has not decrypted yet
		_ = p.conn.SetReadDeadline(past)
		_, err := p.r.Peek(1)
		_ = p.conn.SetReadDeadline(time.Time{})
		if !isTimeout(err) {
			return true
		}
	}
	return p.raw != nil && isUnread(p.raw)
}

// ask sends a command and waits for its answer until ctx is done. The query of
// a caller that gives up keeps its place in line, and its answer is discarded.
func (p *pipe) ask(ctx context.Context, want expectation, command []byte) (reply, error) {
	q := &query{want: want, size: len(command)}
	if !p.send(q, command) {
		return reply{}, errElsewhere
	}
	if q.done == nil {
		return p.readOwn(ctx, q)
	}
	select {
	case a := <-q.done:
		return a, a.err
	case <-ctx.Done():
		return reply{}, ctx.Err()
	}
}

// send adds a query to the line and sends its command, unless it should be sent
// elsewhere. The caller must read the answer if q has no channel for it then.
func (p *pipe) send(q *query, command []byte) bool {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || p.retired || p.load+q.size > maxInLine || p.isStuck(now) {
		return false
	}
	if !p.reading && p.isUnread() {
		p.end(errUnasked)
		return false
	}
	p.used = now
	if len(p.line) == 0 {
		p.moved = now
	}
	if p.reading {
		q.done = make(chan reply, 1)
	}
	p.reading = true
	p.line = append(p.line, q)
	p.load += q.size
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

// flush sends the pending bytes, and those that others add in the meantime.
// After some rounds a goroutine takes over, so that no caller works for others
// for long. The caller holds mu and has set sending.
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

// readOwn reads the answer to q, whose caller reads. The owner reads from then
// on if others are in line, or if ctx is done before the answer begins. If ctx
// is done in the middle of the answer, the pipe ends.
func (p *pipe) readOwn(ctx context.Context, q *query) (reply, error) {
	mine := true // guarded by mu
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if mine {
			_ = p.conn.SetReadDeadline(past)
		}
	})
	var a reply
	_, err := p.r.Peek(1)
	begun := err == nil
	if begun {
		a, err = readReply(p.r, q.want)
	}
	stop()

	p.mu.Lock()
	defer p.mu.Unlock()
	mine = false
	late := ctx.Err() != nil
	if p.err == nil {
		switch {
		case err == nil:
			p.pop()
		case late && !begun:
			q.gone = true
		default:
			p.end(err)
		}
	}
	if p.err == nil {
		if late {
			_ = p.conn.SetReadDeadline(time.Time{})
		}
		if p.reading {
			p.letOwnerRead()
		}
	}
	switch {
	case err == nil:
		return a, a.err
	case late:
		return reply{}, ctx.Err()
	}
	return reply{}, errElsewhere
}

// read passes answers to the callers that wait for them, whenever it is the
// owner's turn, until the connection has ended.
func (p *pipe) read() {
	for ended := false; !ended; {
		select {
		case <-p.turn:
			for p.readOne() {
			}
		case <-p.ended:
			ended = true
		}
	}
	_ = p.conn.Close()
	p.senders.Wait()
}

// readOne reads an answer, and reports whether the owner reads the next one.
func (p *pipe) readOne() bool {
	a, err := p.receive()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return false // the first in line has its result already
	}
	if err != nil {
		p.end(err)
		return false
	}
	if q := p.pop(); !q.gone {
		q.done <- a
	}
	return p.reading
}

// receive reads the answer to the first in line, which stays there.
func (p *pipe) receive() (reply, error) {
	if _, err := p.r.Peek(1); err != nil {
		return reply{}, err
	}
	p.mu.Lock()
	if len(p.line) == 0 {
		p.mu.Unlock()
		return reply{}, errUnasked
	}
	q := p.line[0]
	p.mu.Unlock()
	return readReply(p.r, q.want)
}

// pop removes the first in line, whose answer has been read. The caller holds
// mu, and is the one that reads.
func (p *pipe) pop() *query {
	q := p.line[0]
	p.line = p.line[1:]
	p.load -= q.size
	p.moved = time.Now()
	p.reading = len(p.line) > 0 || !seesUnread
	switch {
	case len(p.line) > 0:
	case p.r.Buffered() > 0:
		p.end(errUnasked)
	case p.retired:
		p.end(net.ErrClosed)
	}
	return q
}

// isStuck reports whether the first in line has waited too long.
func (p *pipe) isStuck(now time.Time) bool {
	return len(p.line) > 0 && now.Sub(p.moved) >= stuckAfter
}

// look is the function of the timer.
func (p *pipe) look() {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return
	case len(p.line) == 0 && now.Sub(p.used) >= idleAfter:
		p.end(errors.New("it was idle"))
		return
	case len(p.line) == 0 && now.Sub(p.used) >= tick:
		p.asleep = true
		if !p.reading {
			p.letOwnerRead() // to notice the end of the connection
		}
		p.timer.Reset(idleAfter - now.Sub(p.used))
		return
	case len(p.line) > 0 && now.Sub(p.moved) > p.timeout:
		p.end(errors.New("no answer came in time"))
		return
	case p.isStuck(now):
		for _, q := range p.line[1:] {
			q.tell()
		}
	}
	p.timer.Reset(tick)
}

// tell makes the caller of a query send it elsewhere. The caller of tell holds
// the pipe's mu.
func (q *query) tell() {
	if !q.gone {
		q.gone = true
		if q.done != nil {
			q.done <- reply{err: errElsewhere}
		}
	}
}

// retire ends the pipe when all waiting callers have their answers.
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

// end ends the pipe: read returns, and waiting queries are sent elsewhere. The
// caller holds mu.
func (p *pipe) end(err error) {
	if p.err != nil {
		return
	}
	p.err = err
	close(p.ended)
	p.timer.Stop()
	// Close would wait for TLS to shut down; read does that.
	_ = p.conn.SetDeadline(past)
	for _, q := range p.line {
		q.tell()
	}
	p.line = nil
}
