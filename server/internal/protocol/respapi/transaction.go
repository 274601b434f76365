package respapi

import (
	"fmt"

	"github.com/firnid/firn/server/internal/service"
)

// A transaction is what a connection has queued since MULTI. EXEC takes the
// IDs, so a connection that is lost earlier has taken nothing. EXEC answers the
// commands as if they were pipelined: a command that fails is an error among
// the answers, and the IDs of the others are taken.
type transaction struct {
	commands int
	raw      []byte // their bytes
	aborted  bool   // EXEC will fail, and nothing more is queued
}

// abort discards the commands and makes EXEC fail.
func (t *transaction) abort() { *t = transaction{aborted: true} }

// multi answers MULTI.
func (c *conn) multi([][]byte) {
	if c.tx != nil {
		c.fail("MULTI calls can not be nested")
		return
	}
	c.tx = new(transaction)
	c.out = appendSimple(c.out, "OK")
}

// queue handles a command between MULTI and EXEC, and reports whether it is
// queued. An error that can be found without taking an ID is returned at once.
func (c *conn) queue(args [][]byte, raw []byte) bool {
	if c.cmd.parse != nil {
		q, p := c.cmd.parse(c, args)
		if p == nil {
			p = c.server.front.CheckTake(c.creds, q.name)
		}
		if p != nil {
			c.failProblem(p, q.name)
			return false
		}
	}
	if t := c.tx; !t.aborted {
		if len(t.raw)+len(raw) > c.server.known.command {
			c.fail(fmt.Sprintf("transaction too large: the limit is %d bytes; use pipelines without MULTI",
				c.server.known.command))
			return false
		}
		t.raw = append(t.raw, raw...)
		t.commands++
	}
	c.out = appendSimple(c.out, "QUEUED")
	return true
}

// exec answers EXEC with the answers of the commands, which it reads like a
// pipeline.
func (c *conn) exec([][]byte) {
	t := c.tx
	c.tx = nil
	switch {
	case t == nil:
		c.fail("EXEC without MULTI")
		return
	case t.aborted:
		c.failAs(service.BadParameter, "EXECABORT", "Transaction discarded because of previous errors.")
		return
	}
	c.out = appendArray(c.out, t.commands)
	cmd, buf, r, w := c.cmd, c.buf, c.r, c.w
	c.buf, c.r, c.w = t.raw, 0, len(t.raw)
	c.answerBuffer()
	c.cmd, c.buf, c.r, c.w = cmd, buf, r, w
	c.kind = service.NoProblem // EXEC itself succeeded, whatever the commands did
}

// discard answers DISCARD.
func (c *conn) discard([][]byte) {
	if c.tx == nil {
		c.fail("DISCARD without MULTI")
		return
	}
	c.tx = nil
	c.out = appendSimple(c.out, "OK")
}
