package respapi

import (
	"context"
	"errors"
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
	name      []byte
	count     int
	shape     shape
	format    form.Form // if hasFormat
	hasFormat bool
}

// fewRepeats is the number of equal commands in a row up to which answering
// them one by one costs less than a batch.
const fewRepeats = 4

// maxRepeats is how many equal commands in a row are answered from one batch.
const maxRepeats = 1024

// next answers a command for IDs. It returns how many IDs it gave and how many
// commands it answered, which is more than one if the same command was
// repeated.
func (c *conn) next(args [][]byte, raw []byte) (ids, n int) {
	q, err := c.cmd.take(c, args)
	switch {
	case err != nil:
		c.fail(err.Error())
		return 0, 1
	case q.shape == shapeOne, q.shape == shapeInt:
		return c.serveRepeated(q, raw)
	}
	return c.serveIDs(q), 1
}

// readNext reads NEXT.
func (c *conn) readNext(args [][]byte) (q request, err error) {
	q = request{name: args[1], count: 1, shape: shapeOne}
	options := args[2:]
	if len(options) > 0 && !isWord(options[0], "format") {
		if q.count, err = c.parseCount(options[0]); err != nil {
			return q, err
		}
		q.shape = shapeArray
		options = options[1:]
	}
	switch {
	case len(options) == 0:
	case len(options) != 2 || !isWord(options[0], "format"):
		return q, requestErrorf("syntax error: use %s", c.cmd.usage)
	default:
		q.hasFormat = true
		if q.format, err = form.Parse(string(options[1])); err != nil {
			return q, requestError(textfmt.Message(err))
		}
	}
	return q, nil
}

// readNextB reads NEXTB.
func (c *conn) readNextB(args [][]byte) (q request, err error) {
	q = request{name: args[1], shape: shapePacked, format: form.Of(firn.Raw), hasFormat: true}
	q.count, err = c.parseCount(args[2])
	return q, err
}

// readNextR reads NEXTR. The number of hexadecimal digits shows the size of the
// IDs.
func (c *conn) readNextR(args [][]byte) (q request, err error) {
	q = request{name: args[1], shape: shapeRuns, format: form.Of(firn.Hex), hasFormat: true}
	q.count, err = c.parseCount(args[2])
	return q, err
}

// readIncr reads INCR.
func (c *conn) readIncr(args [][]byte) (request, error) {
	return request{name: args[1], count: 1, shape: shapeInt}, nil
}

// readIncrBy reads INCRBY. Only the amount 1 is valid: IDs that are made
// together are not always consecutive, so the last one does not determine the
// others.
func (c *conn) readIncrBy(args [][]byte) (q request, err error) {
	if string(args[2]) != "1" {
		return q, requestErrorf("INCRBY makes one ID, so its amount must be 1: for several IDs use NEXT %s %s", args[1], args[2])
	}
	return c.readIncr(args)
}

// serveRepeated answers a command for one ID, and the equal commands after it.
// It returns how many IDs it gave and how many commands it answered.
//
// Equal commands in a pipeline are answered from one batch if that is available
// without waiting. The client cannot tell the difference: each command gets its
// own ID, in order. Otherwise they are answered one by one.
func (c *conn) serveRepeated(q request, raw []byte) (ids, n int) {
	if more := c.repeats(raw, min(maxRepeats, c.server.config.Limits.Count)); more >= fewRepeats {
		if name, err := c.sequencerName(q.name); err == nil && c.authorize(auth.Take, name) == nil {
			all := q
			all.count = 1 + more
			if b, err := c.server.take.Try(name, all.count, service.Terms{Fit: c.fit(&all)}); err == nil {
				c.answerIDs(&all, &b)
				c.r += more * len(raw)
				return all.count, all.count
			}
		}
	}
	return c.serveIDs(q), 1
}

// A requestError is an error in a command. No ID was taken.
type requestError string

func (e requestError) Error() string { return string(e) }

func requestErrorf(format string, a ...any) error { return requestError(fmt.Sprintf(format, a...)) }

// parseCount parses the number of requested IDs.
func (c *conn) parseCount(arg []byte) (int, error) {
	n, most := 0, c.server.config.Limits.Count
	for _, digit := range arg {
		if digit < '0' || digit > '9' || n > most {
			n = 0
			break
		}
		n = 10*n + int(digit-'0')
	}
	if n < 1 || n > most {
		return 0, requestErrorf("%s: count is %s: it must be a number from 1 to %d", service.BadParameter, textfmt.Quote(string(arg)), most)
	}
	return n, nil
}

// sequencerName returns a valid name as a string. Commands for one name, one
// after another, share it.
func (c *conn) sequencerName(name []byte) (string, error) {
	if string(name) != c.lastName || len(name) == 0 {
		text := string(name)
		if err := service.CheckName(text); err != nil {
			return "", requestErrorf("%s: %v", service.BadName, err)
		}
		c.lastName = text
	}
	return c.lastName, nil
}

// serveIDs answers with IDs, or with an error. It returns the number of IDs.
func (c *conn) serveIDs(q request) (ids int) {
	name, err := c.sequencerName(q.name)
	if err != nil {
		c.fail(err.Error())
		return 0
	}
	if err := c.authorize(auth.Take, name); err != nil {
		c.denyTake(err, name)
		return 0
	}
	b, err := c.server.take.Take(c.ctx, name, c.creds, q.count, service.Terms{Fit: c.fit(&q), Typed: q.hasFormat && q.format.IsTyped(), Wait: func() context.Context {
		c.flush() // the pending answers
		return c.requestContext()
	}})
	if err == nil {
		c.answerIDs(&q, &b)
		return q.count
	}
	if wrong, ok := errors.AsType[requestError](err); ok {
		c.fail(wrong.Error())
		return 0
	}
	c.failWith(service.ProblemOf(err, c.server.config.Limit, false), name)
	return 0
}

// failWith answers a command for a sequencer with an error.
func (c *conn) failWith(f service.Problem, name string) {
	if f.Cause != nil {
		c.server.config.Logger.LogAttrs(c.requestContext(), f.Level(), "command failed", slog.String("sequencer", name), slog.Any("error", f.Cause))
	}
	text := f.Kind.String() + ": " + f.Detail
	if f.Retry > 0 {
		text += fmt.Sprintf("; retry after %d s", (f.Retry+time.Second-1)/time.Second)
	}
	c.failKind(f.Kind, text)
}

// answerIDs answers with the IDs of a batch.
func (c *conn) answerIDs(q *request, b *service.Batch) {
	switch q.shape {
	case shapeRuns:
		runs := b.Runs()
		c.out = appendArray(c.out, len(runs))
		for _, r := range runs {
			c.out = appendBulk(appendArray(c.out, 3), r.First.Append(c.ids[:0], &q.format))
			c.out = appendInt(appendBulk(c.out, strconv.AppendUint(c.ids[:0], r.Step, 10)), int64(r.Count))
			c.flushFull()
		}
		return
	case shapePacked:
		c.out = appendHead(c.out, '$', q.count*b.Layout().Bits()/8)
		for lo := 0; lo < q.count && c.err == nil; lo += packedAtOnce {
			c.out = b.AppendRaw(c.out, lo, min(lo+packedAtOnce, q.count))
			c.flushFull()
		}
		c.out = append(c.out, "\r\n"...)
		return
	case shapeArray:
		c.out = appendArray(c.out, q.count)
	}
	for id := range b.All {
		if q.shape == shapeInt {
			c.answerInt(q, id.Uint64())
		} else {
			c.out = appendBulk(c.out, id.Append(c.ids[:0], &q.format))
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

// fit returns a function that completes the request for its sequencer, or
// returns an error if it does not fit.
func (c *conn) fit(q *request) func(*service.Sequencer) error {
	return func(s *service.Sequencer) error {
		l := &s.Layout
		switch {
		case q.shape == shapeRuns && !l.HasRuns():
			return requestErrorf("%s: IDs of layout %s do not form runs: use NEXTB %s", service.NoRuns, *l, q.name)
		case q.shape != shapeInt:
		case l.Bits() != 64:
			return requestErrorf("INCR returns a 64-bit integer, but IDs of layout %s have %d bits: use NEXT %s", *l, l.Bits(), q.name)
		case c.server.config.RefuseUnsafe && !isSafe(l):
			return requestErrorf("IDs of layout %s exceed 2^53, where JavaScript rounds integers, and this server does not return them as integers: use NEXT %s", *l, q.name)
		}
		if !q.hasFormat {
			q.format = form.Of(l.Format())
		} else if err := s.Complete(&q.format); err != nil {
			return requestError(textfmt.Message(err))
		}
		return nil
	}
}
