package respapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/requestid"
)

// Buffers of a connection.
const (
	firstBuffer = 4 << 10  // of what is read, at first
	keepBuffer  = 64 << 10 // what it grows to when a client pipelines much, and no buffer is kept that is longer
	flushAt     = 64 << 10 // answers are sent at the latest when there are so many bytes
)

// lingerTime and lingerBytes bound what is read after the last answer. It is
// thrown away: bytes that nobody has read would make the system drop the
// answer.
const (
	lingerTime  = 100 * time.Millisecond
	lingerBytes = 256 << 10
)

// A conn is a connection. Its goroutine uses all of it; others call only stop.
type conn struct {
	s  *Server
	nc net.Conn
	id int64

	ctx     context.Context // of the commands that are answered, where they are traced; else nil
	request string          // the ID of the one that is; "" as long as nobody needs it
	traced  Answered        // where commands are traced

	who     *auth.Credentials // nil for who has not said who it is
	name    string            // as CLIENT SETNAME has it
	library library
	resp3   bool
	tx      *transaction // since MULTI; else nil
	replay  *run         // that EXEC executes; else nil
	last    *command     // that was answered last
	listing listing
	ending  bool // after the answers that there are, the connection is closed
	linger  bool // and then what still comes is read

	buf     []byte // what was read: buf[r:w] is to be done
	r, w    int
	full    bool // the last read filled buf
	began   bool // a part of a command is there, and its deadline is set
	timed   bool // some deadline for reading is set
	args    [][]byte
	failed  bool      // the command that is answered has an error
	ids     [128]byte // scratch: one ID as text
	known   map[string]*known
	counted struct{ commands, ids uint64 } // since the last flush

	out     []byte    // answers that were not sent
	err     error     // of sending: the client is gone
	writeBy time.Time // the deadline for writing; zero before the first
	ended   time.Time // when the command before did; zero where it is not known

	stopMu   sync.Mutex // guards stopping, and the deadline for reading
	stopping bool
}

// serve answers commands until the connection ends.
func (c *conn) serve() {
	for {
		c.answerTraced()
		c.send(c.ended)
		if c.ending || c.err != nil {
			break
		}
		if err := c.fill(); err != nil {
			c.endOf(err)
			break
		}
	}
	if c.linger && c.err == nil {
		c.discard()
	}
}

// answerTraced is answer, of which the server's Trace is told where there is
// one.
func (c *conn) answerTraced() {
	if c.s.c.Trace == nil || c.r == c.w {
		c.answer()
		return
	}
	var end func(Answered)
	c.ctx, end = c.s.c.Trace(c.s.ctx)
	c.traced = Answered{}
	defer func() {
		c.ctx = nil
		end(c.traced)
	}()
	c.answer()
}

// answer answers all commands that have arrived as a whole.
func (c *conn) answer() {
	c.ended = time.Time{}
	for c.r < c.w && !c.ending && c.err == nil {
		l := c.s.ours
		if c.who == nil {
			l = c.s.others
		}
		n, args, err := parse(c.buf[c.r:c.w], c.args[:0], l)
		c.args = args
		if err != nil {
			c.refuse(err)
			return
		}
		if n == 0 {
			return
		}
		raw := c.buf[c.r : c.r+n]
		c.r += n
		c.began = false
		if len(args) > 0 {
			c.execute(args, raw)
		}
		if len(c.out) >= flushAt {
			c.flush()
			c.ended = time.Time{} // sending is no part of a command
		}
	}
}

// repeats is how many times raw, which was just read, comes again after it, at
// most most-1 times.
func (c *conn) repeats(raw []byte, most int) int {
	if c.replay != nil {
		return min(c.replay.count, most-1)
	}
	n := 0
	for rest := c.buf[c.r:c.w]; n < most-1 && bytes.HasPrefix(rest, raw); rest = rest[len(raw):] {
		n++
	}
	return n
}

// skip takes n of the commands that repeats has found as answered.
func (c *conn) skip(raw []byte, n int) {
	if c.replay != nil {
		c.replay.count -= n
		return
	}
	c.r += n * len(raw)
}

// refuse answers what is no command, after which nothing can be read.
func (c *conn) refuse(err error) {
	c.fail(codeErr, err.Error())
	c.ending, c.linger = true, true
	c.note("invalid", 0, 1)
	if c.s.c.Observe != nil {
		c.s.c.Observe("invalid", 1, 0, 0, true)
	}
}

// note notes what was answered, for Trace.
func (c *conn) note(name string, ids, n int) {
	if c.traced.Commands == 0 {
		c.traced.First = name
	}
	c.traced.Commands += n
	c.traced.IDs += ids
	if c.failed {
		c.traced.Errors += n
	}
}

// requestContext is the context of the command that is answered, which has an
// ID.
func (c *conn) requestContext() context.Context {
	if c.request == "" {
		c.request = requestid.New()
	}
	ctx := c.ctx
	if ctx == nil {
		ctx = c.s.ctx
	}
	return requestid.WithID(ctx, c.request)
}

// fail answers with an error.
func (c *conn) fail(code, text string) {
	c.out = appendError(c.out, code, text)
	c.failed = true
}

// flush sends the answers that there are, with one write.
func (c *conn) flush() { c.send(time.Time{}) }

// send is flush at a moment that was just read from the clock; zero if none
// was.
func (c *conn) send(now time.Time) {
	if n := c.counted; n.commands > 0 {
		c.s.totalCommands.Add(n.commands)
		c.s.totalN.Add(n.ids)
		c.counted.commands, c.counted.ids = 0, 0
	}
	if len(c.out) > 0 && c.err == nil {
		if now.IsZero() {
			now = time.Now()
		}
		c.listing.active.Store(now.UnixNano())
		c.listing.last.Store(c.last)
		if c.err = c.extendWriting(now); c.err == nil {
			var n int
			n, c.err = c.nc.Write(c.out)
			c.s.totalOut.Add(uint64(n))
		}
		if errors.Is(c.err, os.ErrDeadlineExceeded) {
			c.s.c.Log.Debug("connection closed: the client does not read its answers", "peer", c.nc.RemoteAddr())
		}
	}
	c.out = c.out[:0]
	if cap(c.out) > 2*keepBuffer {
		c.out = nil
	}
}

// extendWriting lets a write take WriteTimeout from now, and up to an eighth of
// it more. Setting a deadline costs as much as answering a command, so most
// writes keep the previous one.
func (c *conn) extendWriting(now time.Time) error {
	d := c.s.c.WriteTimeout
	if c.writeBy.Sub(now) >= d {
		return nil
	}
	c.writeBy = now.Add(d + d/8)
	return c.nc.SetWriteDeadline(c.writeBy)
}

// fill reads more.
func (c *conn) fill() error {
	if c.r == c.w {
		c.r, c.w = 0, 0
		if c.full && len(c.buf) < keepBuffer {
			c.buf = make([]byte, max(2*len(c.buf), firstBuffer))
		} else if len(c.buf) > keepBuffer || c.buf == nil {
			c.buf = make([]byte, firstBuffer)
		}
	} else {
		if c.r > 0 {
			c.w = copy(c.buf, c.buf[c.r:c.w])
			c.r = 0
		}
		if c.w == len(c.buf) || c.full && len(c.buf) < keepBuffer {
			// parse has an error for whatever is longer than its limits.
			c.buf = append(c.buf, make([]byte, len(c.buf))...)
		}
	}
	if err := c.setTimeout(); err != nil {
		return err
	}
	n, err := c.nc.Read(c.buf[c.w:])
	c.w += n
	c.s.totalIn.Add(uint64(n))
	c.full = c.w == len(c.buf)
	if n > 0 {
		return nil // an error comes again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// setTimeout sets the deadline of the next read.
func (c *conn) setTimeout() error {
	d := c.s.c.IdleTimeout
	if c.who == nil && (d == 0 || d > c.s.c.ReadTimeout) {
		d = c.s.c.ReadTimeout
	}
	switch {
	case c.w > 0 && c.began:
		return nil // all of a command has one deadline
	case c.w > 0:
		c.began, d = true, c.s.c.ReadTimeout
	case d == 0 && !c.timed:
		return nil
	}
	c.timed = d > 0
	var at time.Time
	if c.timed {
		at = time.Now().Add(d)
	}
	c.stopMu.Lock()
	defer c.stopMu.Unlock()
	if c.stopping {
		return net.ErrClosed
	}
	return c.nc.SetReadDeadline(at)
}

// stop ends the connection when it has answered what it has read.
func (c *conn) stop() {
	c.stopMu.Lock()
	defer c.stopMu.Unlock()
	c.stopping = true
	// A read that waits ends. The error would be that of a connection which has
	// ended anyway.
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
}

// endOf says the last word where reading has failed.
func (c *conn) endOf(err error) {
	c.stopMu.Lock()
	stopping := c.stopping
	c.stopMu.Unlock()
	if stopping {
		c.linger = true // what a client has sent meanwhile must not cost it its answers
	}
	// Who is idle is not told anything: it would be taken for an answer.
	if c.began && !stopping && errors.Is(err, os.ErrDeadlineExceeded) {
		c.refuse(protocolError("timeout: a command arrives within " + c.s.c.ReadTimeout.String() + " as a whole"))
		c.flush()
	}
}

// discard ends the half of the connection that is written, and reads for a
// moment what the other half still brings.
func (c *conn) discard() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if c.nc.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, c.nc, lingerBytes)
	}
}
