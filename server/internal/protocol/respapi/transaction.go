package respapi

import (
	"bytes"
	"fmt"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
)

// inMulti says what happens to a command between MULTI and EXEC.
type inMulti uint8

const (
	queued  inMulti = iota
	atOnce          // executed at once, as outside
	refused         // an error
)

// A transaction is what a connection has queued since MULTI. EXEC takes the
// IDs, so a connection that is lost earlier has taken nothing. EXEC answers the
// commands as if they were pipelined: a command that fails is an error among
// the answers, and the IDs of the others are taken.
type transaction struct {
	runs     []run
	commands int
	bytes    int  // size of the runs
	aborted  bool // EXEC will fail, and nothing more is queued
}

// A run is a command that was queued one or more times in a row.
type run struct {
	raw   []byte
	count int
}

// runBytes is the memory of a run besides its bytes.
const runBytes = 40

// abort discards the commands and makes EXEC fail.
func (t *transaction) abort() { *t = transaction{aborted: true} }

// multi answers MULTI.
func (c *conn) multi() {
	if c.tx != nil {
		c.fail("MULTI calls can not be nested")
		return
	}
	c.tx = new(transaction)
	c.out = appendSimple(c.out, "OK")
}

// queue handles a command between MULTI and EXEC, and reports whether it is
// queued. An error that can be found without taking an ID is returned at once.
func (c *conn) queue(cmd *command, args [][]byte, raw []byte) bool {
	if cmd.in == refused {
		c.fail(fmt.Sprintf("%s inside MULTI is not allowed", cmd.name))
		return false
	}
	if cmd.key {
		q, err := c.readRequest(cmd.op, args)
		if err == nil {
			if err = service.CheckName(string(q.name)); err != nil {
				err = fmt.Errorf("%s: %w", service.BadName, err)
			}
		}
		if err != nil {
			c.fail(err.Error())
			return false
		}
		if err := c.may(auth.Take, string(q.name)); err != nil {
			c.denyTake(err, string(q.name))
			return false
		}
	}
	t := c.tx
	if !t.aborted {
		last := len(t.runs) - 1
		again := last >= 0 && bytes.Equal(t.runs[last].raw, raw)
		if !again {
			t.bytes += len(raw) + runBytes
		}
		switch {
		case t.commands == c.s.c.Limits.Count:
			c.fail(fmt.Sprintf("transaction too long: the limit is %d commands; use pipelines without MULTI", c.s.c.Limits.Count))
			return false
		case t.bytes > c.s.ours.command:
			c.fail(fmt.Sprintf("transaction too large: the limit is %d bytes, counting equal commands in a row once; use pipelines without MULTI", c.s.ours.command))
			return false
		case again:
			t.runs[last].count++
		default:
			t.runs = append(t.runs, run{bytes.Clone(raw), 1})
		}
		t.commands++
	}
	c.out = appendSimple(c.out, "QUEUED")
	return true
}

// exec answers EXEC with the answers of the commands.
func (c *conn) exec() {
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
	for i := range t.runs {
		c.replay = &t.runs[i]
		// Once the client has gone, take no more IDs for it.
		for c.replay.count > 0 && c.err == nil {
			c.replay.count--
			_, args, _ := parse(c.replay.raw, c.args[:0], c.s.ours) // it was parsed when it was queued
			c.args = args
			c.execute(args, c.replay.raw)
			if len(c.out) >= flushAt {
				c.flush()
			}
		}
	}
	c.replay = nil
	c.kind = service.NoProblem // EXEC itself succeeded, whatever the commands did
}

// discardQueue answers DISCARD.
func (c *conn) discardQueue() {
	if c.tx == nil {
		c.fail("DISCARD without MULTI")
		return
	}
	c.tx = nil
	c.out = appendSimple(c.out, "OK")
}
