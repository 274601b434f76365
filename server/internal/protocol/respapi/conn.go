package respapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math/bits"
	"net"
	"os"
	"sync"
	"time"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/service"
)

// Buffers of a connection.
const (
	firstBuffer = 4 << 10  // initial read buffer
	keepBuffer  = 64 << 10 // size when a client pipelines much; longer buffers are not kept
	flushAt     = 64 << 10 // answers are sent when they reach this size
)

// A conn is a connection. Its goroutine uses all of it; other goroutines only
// call stop. What it needs only for commands is in its workspace, so that
// thousands of idle connections take little memory.
type conn struct {
	*workspace // nil while there is nothing to read or answer

	server   *Server
	nc       net.Conn
	id       int64
	accepted time.Time

	creds     *auth.Credentials // nil before authentication
	name      string            // set by CLIENT SETNAME
	library   library
	tx        *transaction // after MULTI, otherwise nil
	lastName  string       // of a sequencer, that CheckName accepted
	tracks    bool         // CLIENT TRACKING is on
	resp3     bool
	known     bool // a command was accepted
	succeeded bool // a command has succeeded
	closing   bool // close the connection after the pending answers
	linger    bool // and then read what still arrives
	outdated  bool // its certificate was refused: close it once what came is answered

	full        bool   // the last read filled buf
	began       bool   // part of a command has arrived, and its deadline is set
	hasDeadline bool   // a read deadline is set
	size        int    // of the room in the next workspace
	buf         []byte // bytes read; buf[r:w] is not processed yet
	r, w        int

	err     error     // error of sending: the client has gone
	writeBy time.Time // write deadline; zero before the first write
	lastEnd time.Time // when the previous command ended; zero if unknown

	stopMu   sync.Mutex // guards stopping and the read deadline
	stopping bool
}

// A workspace is what a connection uses while it reads and answers commands.
type workspace struct {
	room []byte // for conn.buf, unless that had to grow
	args [][]byte
	out  []byte    // answers not sent yet
	text [128]byte // scratch: one ID as text

	ctx       context.Context // of the current commands
	tally     tally           // of the commands that arrived together
	requestID string          // ID of the current command; "" until it is needed
	cmd       *command        // the current one, nil if it is unknown
	kind      service.Kind    // of the answer to it
}

// A tally counts what was answered.
type tally struct {
	first                 string // name of the first command
	commands, ids, errors int
}

// serve answers commands until the connection ends.
func (c *conn) serve() {
	for {
		c.answer()
		c.send(c.lastEnd)
		if c.outdated {
			c.closing, c.linger = true, true
		}
		if c.closing || c.err != nil {
			break
		}
		if err := c.readMore(); err != nil {
			c.readFailed(err)
			break
		}
	}
	if c.linger && c.err == nil {
		listen.Linger(c.nc)
	}
}

// answer answers all commands that have arrived completely, and reports them
// together.
func (c *conn) answer() {
	if c.r == c.w {
		return
	}
	c.tally, c.ctx = tally{}, c.server.ctx
	if c.server.config.Trace != nil {
		ctx, end := c.server.config.Trace(c.server.ctx)
		c.ctx = ctx
		defer func() { end(c.tally.first, c.tally.commands, c.tally.ids, c.tally.errors) }()
	}
	c.answerBuffer()
}

// answerBuffer answers all commands that the buffer has completely.
func (c *conn) answerBuffer() {
	c.lastEnd = time.Time{}
	for c.r < c.w && !c.closing && c.err == nil {
		l := c.server.known
		if c.creds == nil {
			l = c.server.stranger
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
			c.lastEnd = time.Time{} // sending is not part of a command
		}
	}
}

// countRepeats returns how often raw, which was just parsed, is repeated
// directly after it, up to most-1 times.
func (c *conn) countRepeats(raw []byte, most int) (n int) {
	for rest := c.buf[c.r:c.w]; n < most-1 && bytes.HasPrefix(rest, raw); rest = rest[len(raw):] {
		n++
	}
	return n
}

// refuse answers invalid input, after which nothing can be read.
func (c *conn) refuse(err error) {
	c.fail(err.Error())
	c.closing, c.linger = true, true
	c.count("invalid", 1, 0)
	c.server.front.Observe(c.kind, 0, 1)
}

// count counts n commands of a name, which gave so many IDs.
func (c *conn) count(name string, n, ids int) {
	if c.tally.commands == 0 {
		c.tally.first = name
	}
	c.tally.commands += n
	c.tally.ids += ids
	if c.kind != service.NoProblem {
		c.tally.errors += n
	}
}

// requestContext returns the context of the current command, with its request
// ID.
func (c *conn) requestContext() context.Context {
	if c.requestID == "" {
		c.requestID = requestid.New()
	}
	return requestid.WithID(c.ctx, c.requestID)
}

// fail answers with an error about the command or its client.
func (c *conn) fail(text string) { c.failKind(service.BadParameter, text) }

// failKind answers with an error of a kind.
func (c *conn) failKind(k service.Kind, text string) {
	c.outdated = c.outdated || k == service.Unauthorized && c.ofCertificate()
	c.failAs(k, k.RESP(), text)
}

// failAs is failKind with another first word than that of the kind.
func (c *conn) failAs(k service.Kind, code, text string) {
	c.out = appendError(c.out, code, text)
	c.kind = k
}

// flush sends the pending answers with one write.
func (c *conn) flush() { c.send(time.Time{}) }

// send is flush at a time that was just read from the clock; zero if none was
// read.
func (c *conn) send(now time.Time) {
	if c.workspace == nil {
		return
	}
	if len(c.out) > 0 && c.err == nil {
		if now.IsZero() {
			now = time.Now()
		}
		if c.err = c.extendWriting(now); c.err == nil {
			_, c.err = c.nc.Write(c.out)
		}
		if errors.Is(c.err, os.ErrDeadlineExceeded) {
			c.server.front.Logger.Debug("connection closed: client does not read its answers", "peer", c.nc.RemoteAddr())
		}
	}
	c.out = c.out[:0]
	if cap(c.out) > 2*keepBuffer {
		c.out = nil
	}
}

// extendWriting gives a write at least Limits.Write, and up to an eighth more.
// Setting a deadline costs as much as answering a command, so most writes keep
// the previous one.
func (c *conn) extendWriting(now time.Time) error {
	d := c.server.front.Limits.Write
	if c.writeBy.Sub(now) >= d {
		return nil
	}
	c.writeBy = now.Add(d + d/8)
	return c.nc.SetWriteDeadline(c.writeBy)
}

// readMore reads more bytes.
func (c *conn) readMore() error {
	if c.r == c.w {
		c.r, c.w = 0, 0
		if c.full && len(c.buf) < keepBuffer {
			c.size = 2 * len(c.buf)
		}
	} else {
		if c.r > 0 {
			c.w = copy(c.buf, c.buf[c.r:c.w])
			c.r = 0
		}
		if c.w == len(c.buf) || c.full && len(c.buf) < keepBuffer {
			// parse rejects anything longer than its limits.
			c.buf = append(c.buf, make([]byte, len(c.buf))...)
		}
	}
	if err := c.setTimeout(); err != nil {
		return err
	}
	var n int
	var err error
	if c.w == 0 {
		n, err = listen.ReadLate(c.nc, c)
	} else {
		n, err = c.nc.Read(c.buf[c.w:])
	}
	if n > 0 {
		c.w += n
		c.full = c.w == len(c.buf)
		return nil // a read error will occur again
	}
	return cmp.Or(err, io.ErrNoProgress)
}

// workspaces are for connections that have something to read. The room of those
// in a pool is twice as long as in the one before, from firstBuffer to
// keepBuffer.
var workspaces [5]sync.Pool

func poolOf(size int) *sync.Pool { return &workspaces[bits.Len(uint(size/firstBuffer))-1] }

// Take takes a workspace with c.size bytes of room, unless the connection has
// one, and returns the room.
func (c *conn) Take() []byte {
	c.size = max(c.size, firstBuffer)
	if c.workspace != nil && len(c.room) != c.size {
		c.Give()
	}
	if c.workspace == nil {
		if c.workspace, _ = poolOf(c.size).Get().(*workspace); c.workspace == nil {
			c.workspace = &workspace{room: make([]byte, c.size)}
		}
	}
	c.buf = c.room
	return c.buf
}

// Give gives the workspace back. All answers are sent, and nothing points into
// the room any more.
func (c *conn) Give() {
	clear(c.args[:cap(c.args)])
	c.ctx, c.requestID = nil, ""
	poolOf(len(c.room)).Put(c.workspace)
	c.workspace, c.buf = nil, nil
}

// setTimeout sets the deadline of the next read.
func (c *conn) setTimeout() error {
	d := c.server.config.IdleTimeout
	if c.creds == nil && (d == 0 || d > c.server.front.Limits.Read) {
		d = c.server.front.Limits.Read
	}
	switch {
	case c.w > 0 && c.began:
		return nil // the whole command has one deadline
	case c.w > 0:
		c.began, d = true, c.server.front.Limits.Read
	case d == 0 && !c.hasDeadline:
		return nil
	}
	c.hasDeadline = d > 0
	var at time.Time
	if c.hasDeadline {
		at = time.Now().Add(d)
	}
	c.stopMu.Lock()
	defer c.stopMu.Unlock()
	if c.stopping {
		return net.ErrClosed
	}
	return c.nc.SetReadDeadline(at)
}

// stop ends the connection once it has answered what it has read.
func (c *conn) stop() {
	c.stopMu.Lock()
	defer c.stopMu.Unlock()
	c.stopping = true
	// End a read that waits. An error here would mean that the connection has
	// ended anyway.
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
}

// readFailed sends a last answer if reading has failed.
func (c *conn) readFailed(err error) {
	c.stopMu.Lock()
	stopping := c.stopping
	c.stopMu.Unlock()
	if stopping {
		c.linger = true // unread input must not make the client lose its answers
	}
	// An idle client gets no error: it would take it for an answer.
	if c.began && !stopping && errors.Is(err, os.ErrDeadlineExceeded) {
		c.refuse(protocolError("timeout: a command must arrive completely within " + c.server.front.Limits.Read.String()))
		c.flush()
	}
}
