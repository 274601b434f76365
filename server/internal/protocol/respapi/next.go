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
	"github.com/firnid/firn/server/internal/ids/inspect"
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

// take answers NEXT, NEXTB, NEXTR, INCR and INCRBY. It returns how many IDs it
// gave and how many commands it answered.
func (c *conn) take(o op, args [][]byte, raw []byte) (ids, n int) {
	q, err := c.readRequest(o, args)
	switch {
	case err != nil:
		c.fail(err.Error())
		return 0, 1
	case q.shape == shapeOne, q.shape == shapeInt:
		return c.serveAlike(q, raw)
	}
	return c.serveIDs(q), 1
}

// readRequest parses a command for IDs.
func (c *conn) readRequest(o op, args [][]byte) (q request, err error) {
	q = request{name: args[1], count: 1, shape: shapeOne}
	switch o {
	case opIncr:
		q.shape = shapeInt
	case opIncrBy:
		q.shape = shapeInt
		err = checkAmount(args)
	case opNextB:
		q.shape, q.format, q.hasFormat = shapePacked, form.Of(firn.Raw), true
		q.count, err = parseCount(args[2], c.s.c.Limits.Count)
	case opNextR:
		// The number of hexadecimal digits shows the size of the IDs.
		q.shape, q.format, q.hasFormat = shapeRuns, form.Of(firn.Hex), true
		q.count, err = parseCount(args[2], c.s.c.Limits.Count)
	default:
		err = q.options(args[2:], c.s.c.Limits.Count)
	}
	return q, err
}

// checkAmount returns an error for an invalid amount of INCRBY. Only 1 is
// valid: IDs that are made together are not always consecutive, so the last one
// does not determine the others.
func checkAmount(args [][]byte) error {
	amount := string(args[2])
	if amount == "1" {
		return nil
	}
	if n, err := strconv.ParseInt(amount, 10, 64); err != nil {
		return requestErrorf("value is not an integer or out of range: the amount of INCRBY must be 1, not %s", inspect.Quote(amount))
	} else if n < 1 {
		amount = "N"
	}
	return requestErrorf("INCRBY makes one ID, so its amount must be 1, not %s: for several IDs use NEXT %s %s", inspect.Quote(string(args[2])), args[1], amount)
}

// serveAlike answers a command for one ID, and the equal commands after it. It
// returns how many IDs it gave and how many commands it answered.
//
// Equal commands in a pipeline are answered from one batch if that is available
// without waiting. The client cannot tell the difference: each command gets its
// own ID, in order. Otherwise they are answered one by one.
func (c *conn) serveAlike(q request, raw []byte) (ids, n int) {
	if more := c.repeats(raw, min(maxRepeats, c.s.c.Limits.Count)); more >= fewRepeats {
		if name, err := c.sequencerName(q.name); err == nil && c.may(auth.Take, name) == nil {
			all := q
			all.count = 1 + more
			if b, err := c.s.take.Try(name, all.count, service.Terms{Fit: c.fit(&all)}); err == nil {
				c.answerIDs(&all, &b)
				c.skip(raw, more)
				return all.count, all.count
			}
		}
	}
	return c.serveIDs(q), 1
}

// options parses what follows the name in NEXT.
func (q *request) options(args [][]byte, most int) (err error) {
	if len(args) > 0 && !isWord(args[0], "format") {
		if q.count, err = parseCount(args[0], most); err != nil {
			return err
		}
		q.shape = shapeArray
		args = args[1:]
	}
	switch {
	case len(args) == 0:
	case !isWord(args[0], "format"):
		return requestErrorf("syntax error: unknown option %s: use %s", inspect.Quote(string(args[0])), commands[0].usage)
	case len(args) == 1:
		return requestErrorf("syntax error: FORMAT needs the name of a format: use %s", commands[0].usage)
	case len(args) > 2:
		return requestErrorf("syntax error: nothing may follow FORMAT and its name: use %s", commands[0].usage)
	default:
		q.hasFormat = true
		if q.format, err = form.Parse(string(args[1])); err != nil {
			return requestError(service.Detail(err))
		}
	}
	return nil
}

// A requestError is an error in a command. No ID was taken.
type requestError string

func (e requestError) Error() string { return string(e) }

func requestErrorf(format string, a ...any) error { return requestError(fmt.Sprintf(format, a...)) }

// parseCount parses the number of requested IDs.
func parseCount(arg []byte, most int) (int, error) {
	n := 0
	for _, c := range arg {
		if c < '0' || c > '9' || n > most {
			n = 0
			break
		}
		n = 10*n + int(c-'0')
	}
	if n < 1 || n > most {
		return 0, requestErrorf("%s: count is %s: it must be a number from 1 to %d", service.BadParameter, inspect.Quote(string(arg)), most)
	}
	return n, nil
}

// sequencerName returns a valid name as a string. Commands for one name, one after
// another, share it.
func (c *conn) sequencerName(name []byte) (string, error) {
	if string(name) != c.lastName || len(name) == 0 {
		text := string(name)
		if err := service.CheckName(text); err != nil {
			return "", err
		}
		c.lastName = text
	}
	return c.lastName, nil
}

// serveIDs answers with IDs, or with an error. It returns the number of IDs.
func (c *conn) serveIDs(q request) (ids int) {
	name, err := c.sequencerName(q.name)
	if err != nil {
		c.fail(service.BadName.String() + ": " + err.Error())
		return 0
	}
	if err := c.may(auth.Take, name); err != nil {
		c.denyTake(err, name)
		return 0
	}
	waited := false
	defer func() {
		if waited {
			c.s.waiting.Add(-1)
		}
	}()
	b, err := c.s.take.Take(c.context(), name, c.who, q.count, service.Terms{Fit: c.fit(&q), Typed: q.hasFormat && q.format.IsTyped(), Wait: func() context.Context {
		waited = true
		c.flush() // the pending answers
		c.s.waiting.Add(1)
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
	c.fault(service.FaultOf(err, c.s.c.Limit, false), name)
	return 0
}

// fault answers a command for a sequencer with an error.
func (c *conn) fault(f service.Fault, name string) {
	if f.Cause != nil {
		c.s.c.Log.LogAttrs(c.requestContext(), f.Level(), "command failed", slog.String("sequencer", name), slog.Any("error", f.Cause))
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
		case c.s.c.RefuseUnsafe && !isSafe(l):
			return requestErrorf("IDs of layout %s exceed 2^53, where JavaScript rounds integers, and this server does not return them as integers: use NEXT %s", *l, q.name)
		}
		if !q.hasFormat {
			q.format = form.Of(l.Format())
		} else if err := s.Complete(&q.format); err != nil {
			return requestError(service.Detail(err))
		}
		return nil
	}
}
