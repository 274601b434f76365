package respapi

import (
	"bytes"
	"fmt"

	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/service"
)

// inMulti is what becomes of a command between MULTI and EXEC.
type inMulti uint8

const (
	queued  inMulti = iota
	atOnce          // it is executed, as outside
	refused         // it is an error
)

// A transaction is what a connection has queued since MULTI. Nothing is taken
// before EXEC, so a connection that is lost before has taken nothing. EXEC
// answers the commands as if they were pipelined: one that fails is an error
// among the answers, and the IDs of the others are taken.
type transaction struct {
	runs     []run
	commands int
	bytes    int  // of the runs
	aborted  bool // EXEC will refuse, and nothing more is queued
}

// A run is a command that was queued several times in a row.
type run struct {
	raw   []byte
	count int
}

// runBytes is what a run costs beside its bytes.
const runBytes = 40

// abort forgets the commands, and has EXEC refuse.
func (t *transaction) abort() { *t = transaction{aborted: true} }

// multi answers MULTI.
func (c *conn) multi() {
	if c.tx != nil {
		c.fail(codeErr, "MULTI calls can not be nested")
		return
	}
	c.tx = new(transaction)
	c.out = appendSimple(c.out, "OK")
	c.publish()
}

// queue answers a command between MULTI and EXEC, and reports whether it is
// queued. What can be known to be wrong with it without taking an ID is an
// error at once.
func (c *conn) queue(cmd *command, args [][]byte, raw []byte) bool {
	if cmd.in == refused {
		c.fail(codeErr, fmt.Sprintf("%s inside MULTI is not allowed", cmd.name))
		return false
	}
	if cmd.key {
		q, err := c.readRequest(cmd.op, args)
		if err == nil {
			err = service.CheckName(string(q.name))
		}
		if err != nil {
			c.fail(codeErr, err.Error())
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
		case t.commands == c.s.c.MaxCount:
			c.fail(codeErr, fmt.Sprintf("the transaction is too long: it has at most %d commands; use pipelines without MULTI", c.s.c.MaxCount))
			return false
		case t.bytes > c.s.ours.command:
			c.fail(codeErr, fmt.Sprintf("the transaction is too large: its commands have at most %d bytes, equal ones in a row counted once; use pipelines without MULTI", c.s.ours.command))
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

// exec answers EXEC: with the answers to the commands.
func (c *conn) exec() {
	t := c.tx
	c.tx = nil
	switch {
	case t == nil:
		c.fail(codeErr, "EXEC without MULTI")
		return
	case t.aborted:
		c.fail("EXECABORT", "Transaction discarded because of previous errors.")
		c.publish()
		return
	}
	defer c.publish()
	c.out = appendArray(c.out, t.commands)
	for i := range t.runs {
		c.replay = &t.runs[i]
		// Once the client is gone, nothing more is taken for it.
		for c.replay.count > 0 && c.err == nil {
			c.replay.count--
			_, args, _ := parse(c.replay.raw, c.args[:0], c.s.ours) // it was parsed before
			c.args = args
			c.execute(args, c.replay.raw)
			if len(c.out) >= flushAt {
				c.flush()
			}
		}
	}
	c.replay = nil
	c.failed = false // it has answered, whatever the commands did
}

// discardQueue answers DISCARD.
func (c *conn) discardQueue() {
	if c.tx == nil {
		c.fail(codeErr, "DISCARD without MULTI")
		return
	}
	c.tx = nil
	c.out = appendSimple(c.out, "OK")
	c.publish()
}
