package respapi

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/service"
)

// A shape is the form in which IDs are returned.
type shape uint8

const (
	shapeOne    shape = iota // one bulk string per command, for one or more commands
	shapeArray               // as an array of bulk strings
	shapePacked              // as one bulk string
	shapeRuns                // as an array of runs: first ID, step and count
	shapeInt                 // as an integer
)

// A request is a parsed command for IDs.
type request struct {
	service.Request
	name  string
	shape shape
}

// fewRepeats is the number of equal commands in a row up to which answering
// them one by one costs less than a batch.
const fewRepeats = 4

// maxRepeats is how many equal commands in a row are answered from one batch.
const maxRepeats = 1024

// next answers a command for IDs. It returns how many IDs it gave and how many
// commands it answered, which is more than one if the same command was
// repeated.
//
// Equal commands for one ID in a pipeline are answered from one batch if that
// is available without waiting. The client cannot tell the difference: each
// command gets its own ID, in order. Otherwise they are answered one by one.
func (c *conn) next(args [][]byte, raw []byte) (ids, n int) {
	var q service.Request
	name, shape, p := c.parseRequest(args, &q)
	if p != nil {
		c.failProblem(p, name)
		return 0, 1
	}
	front := c.server.front
	var b service.Batch
	if shape == shapeInt {
		q.Fit = func(s *service.Sequencer) *service.Problem { return c.fitInt(&s.Layout, name) }
	}
	if shape == shapeOne || shape == shapeInt {
		if more := c.countRepeats(raw, min(maxRepeats, c.server.front.Limits.Count)); more >= fewRepeats {
			q.Count = 1 + more
			if front.Try(c.ctx, c.creds, name, &q, &b) {
				c.answerIDs(shape, name, &q.Resolved, &b)
				c.r += more * len(raw)
				return q.Count, q.Count
			}
			q.Count = 1
		}
	}
	q.Wait = func() context.Context {
		c.flush() // the pending answers
		return c.requestContext()
	}
	if p := front.Take(c.ctx, c.creds, name, &q, &b); p != nil {
		c.failProblem(p, name)
		return 0, 1
	}
	c.answerIDs(shape, name, &q.Resolved, &b)
	return q.Count, 1
}

// parseRequest reads a command for IDs, which the client must be allowed to
// take. It sets q, apart from the name, so that functions in q do not escape.
func (c *conn) parseRequest(args [][]byte, q *service.Request) (name string, s shape, p *service.Problem) {
	r, p := c.cmd.parse(c, args)
	if p == nil {
		p = c.server.front.Allow(c.creds, auth.Take, r.name)
	}
	*q = r.Request
	return r.name, r.shape, p
}

// requestOf returns a request for one ID of the named sequencer. Commands for
// one name, one after another, share its text.
func (c *conn) requestOf(name []byte, s shape) request {
	if string(name) != c.lastName {
		c.lastName = string(name)
	}
	return request{service.Request{Count: 1}, c.lastName, s}
}

// parseNext reads NEXT.
func (c *conn) parseNext(args [][]byte) (q request, p *service.Problem) {
	q = c.requestOf(args[1], shapeOne)
	options := args[2:]
	if len(options) > 0 && !isWord(options[0], "format") {
		if q.Count, p = c.server.front.ParseCount(options[0]); p != nil {
			return q, p
		}
		q.shape = shapeArray
		options = options[1:]
	}
	switch {
	case len(options) == 0:
	case len(options) != 2 || !isWord(options[0], "format"):
		return q, service.Problemf(service.BadParameter, "syntax error: use %s", c.cmd.usage)
	default:
		var err error
		if q.Format, err = form.Parse(string(options[1])); err != nil {
			return q, service.Problemf(service.BadParameter, "%s", textfmt.Message(err))
		}
	}
	return q, nil
}

// parseNextB reads NEXTB.
func (c *conn) parseNextB(args [][]byte) (q request, p *service.Problem) {
	q = c.requestOf(args[1], shapePacked)
	q.Format = form.Of(firn.Raw)
	q.Count, p = c.server.front.ParseCount(args[2])
	return q, p
}

// parseNextR reads NEXTR. The number of hexadecimal digits shows the size of
// the IDs.
func (c *conn) parseNextR(args [][]byte) (q request, p *service.Problem) {
	q = c.requestOf(args[1], shapeRuns)
	q.Format, q.Runs = form.Of(firn.Hex), true
	q.Count, p = c.server.front.ParseCount(args[2])
	return q, p
}

// parseIncr reads INCR.
func (c *conn) parseIncr(args [][]byte) (request, *service.Problem) {
	return c.requestOf(args[1], shapeInt), nil
}

// parseIncrBy reads INCRBY. Only the amount 1 is valid: IDs that are made
// together are not always consecutive, so the last one does not determine the
// others.
func (c *conn) parseIncrBy(args [][]byte) (request, *service.Problem) {
	if string(args[2]) != "1" {
		return request{}, service.Problemf(service.BadParameter, "INCRBY makes one ID, so its amount must be 1: "+
			"for several IDs use NEXT %s %s", args[1], args[2])
	}
	return c.parseIncr(args)
}

// failProblem answers a command for a sequencer with a problem.
func (c *conn) failProblem(p *service.Problem, name string) {
	if p.Cause != nil {
		c.server.front.Logger.LogAttrs(c.requestContext(), p.Level(), "command failed",
			slog.String("sequencer", name), slog.Any("error", p.Cause))
	}
	text := p.Kind.String() + ": " + p.Detail
	if p.Kind == service.Unauthorized {
		text = authRequired
	}
	if p.Retry > 0 {
		text += fmt.Sprintf("; retry after %d s", (p.Retry+time.Second-1)/time.Second)
	}
	c.failKind(p.Kind, text)
}

// answerIDs answers with the IDs of a batch.
func (c *conn) answerIDs(s shape, name string, f *form.Form, b *service.Batch) {
	n := b.Len()
	switch s {
	case shapeRuns:
		runs := b.Runs()
		c.out = appendArray(c.out, len(runs))
		for _, r := range runs {
			c.out = appendBulk(appendArray(c.out, 3), r.First.Append(c.text[:0], f))
			c.out = appendInt(appendBulk(c.out, strconv.AppendUint(c.text[:0], r.Step, 10)), int64(r.Count))
			c.flushFull()
		}
		return
	case shapePacked:
		c.out = appendHead(c.out, '$', n*b.Layout().Bits()/8)
		for lo := 0; lo < n && c.err == nil; lo += packedAtOnce {
			c.out = b.AppendRaw(c.out, lo, min(lo+packedAtOnce, n))
			c.flushFull()
		}
		c.out = append(c.out, "\r\n"...)
		return
	case shapeArray:
		c.out = appendArray(c.out, n)
	}
	for id := range b.All {
		if s == shapeInt {
			c.answerInt(name, id.Uint64())
		} else {
			c.out = appendBulk(c.out, id.Append(c.text[:0], f))
		}
		c.flushFull()
		if c.err != nil {
			return
		}
	}
}

// packedAtOnce is how many IDs are packed before the answers may be sent.
const packedAtOnce = 256

// flushFull sends the answers if they are many.
func (c *conn) flushFull() {
	if len(c.out) >= flushAt {
		c.flush()
	}
}
