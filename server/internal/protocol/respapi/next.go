package respapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/auth"
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
	format    firn.Format // if hasFormat
	hasFormat bool
}

// A known is a sequencer that the connection has used.
type known struct {
	name string
	q    service.Sequencer
}

// tries reports whether the source can make IDs without waiting.
func (k *known) tries() bool { return k.q.Try != nil || k.q.Try128 != nil }

// maxKnown is how many sequencers a connection remembers. Beyond that it
// forgets all of them, which costs one look-up each.
const maxKnown = 64

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
		c.fail(codeErr, err.Error())
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
		q.shape, q.format, q.hasFormat = shapePacked, firn.Raw, true
		q.count, err = parseCount(args[2], c.s.c.MaxCount)
	case opNextR:
		// The number of hexadecimal digits shows the size of the IDs.
		q.shape, q.format, q.hasFormat = shapeRuns, firn.Hex, true
		q.count, err = parseCount(args[2], c.s.c.MaxCount)
	default:
		err = q.options(args[2:], c.s.c.MaxCount)
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
	if more := c.repeats(raw, min(maxRepeats, c.s.c.MaxCount)); more > 0 {
		if k := c.known[string(q.name)]; k != nil && k.tries() && more >= fewRepeats && c.may(auth.Take, k.name) == nil {
			q.count = 1 + more
			if c.tryAnswer(&k.q, q) == nil {
				c.skip(raw, more)
				return q.count, q.count
			}
			q.count = 1
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
		if err := q.format.UnmarshalText(args[1]); err != nil {
			return requestError(service.Detail(err))
		}
	}
	return nil
}

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

// serveIDs answers with IDs, or with an error. It returns the number of IDs.
func (c *conn) serveIDs(q request) (ids int) {
	k := c.known[string(q.name)]
	name := ""
	if k != nil {
		name = k.name
	} else {
		name = string(q.name)
		if err := service.CheckName(name); err != nil {
			c.fail(codeErr, service.BadName.String()+": "+err.Error())
			return 0
		}
	}
	if err := c.may(auth.Take, name); err != nil {
		c.denyTake(err, name)
		return 0
	}

	if k == nil {
		if s, ok := c.s.c.Backend.Opened(name); ok {
			k = c.keep(name, s)
		}
	}
	var err error
	if k != nil && k.tries() {
		// IDs that are available without waiting need no timer.
		if q.count == 1 && q.shape != shapeRuns {
			err = c.answerOne(k, q)
		} else {
			err = c.tryAnswer(&k.q, q)
		}
		if err == nil {
			return q.count
		}
		if c.failRequest(err) {
			return 0
		}
	}
	// If the backend has another sequencer by now, the code below finds it. But a
	// changed layout must be reported first.
	delete(c.known, name)
	late := false
	if !errors.Is(err, grant.ErrMismatch) {
		if late, err = c.wait(name, q); err == nil {
			return q.count
		}
	}
	if c.failRequest(err) {
		return 0
	}
	f := service.FaultOf(err, c.s.c.Limit, late)
	if f.Cause != nil {
		c.s.c.Log.LogAttrs(c.requestContext(), f.Level(), "command failed", slog.String("sequencer", name), slog.Any("err", f.Cause))
	}
	text := f.Kind.String() + ": " + f.Detail
	if f.Retry > 0 {
		text += fmt.Sprintf("; retry after %d s", (f.Retry+time.Second-1)/time.Second)
	}
	c.failAs(f.Kind, f.Kind.RESP(), text)
	return 0
}

// wait looks a sequencer up and answers with its IDs, waiting for both. It
// first sends the pending answers. late reports whether it waited up to its
// limit.
func (c *conn) wait(name string, q request) (late bool, err error) {
	c.flush()
	c.s.waiting.Add(1)
	defer c.s.waiting.Add(-1)
	ctx, cancel := context.WithTimeout(c.requestContext(), c.s.c.Limit)
	defer cancel()
	s, err := service.Find(ctx, c.s.c.Backend, name, c.s.c.Auth, func() *auth.Credentials { return c.who })
	if err == nil {
		err = c.answerFrom(ctx, &s, q)
	}
	if err != nil {
		return ctx.Err() != nil, err
	}
	c.keep(name, s)
	return false, nil
}

// keep remembers a sequencer.
func (c *conn) keep(name string, s service.Sequencer) *known {
	if len(c.known) >= maxKnown || c.known == nil {
		c.known = make(map[string]*known)
	}
	k := &known{name, s}
	c.known[name] = k
	return k
}

// failRequest answers with err if it is an error in the command itself.
func (c *conn) failRequest(err error) bool {
	if wrong, ok := errors.AsType[requestError](err); ok {
		c.fail(codeErr, wrong.Error())
		return true
	}
	return false
}

// answerFrom takes IDs from a sequencer and answers with them. After an error
// it has answered nothing.
func (c *conn) answerFrom(ctx context.Context, s *service.Sequencer, q request) error {
	format, err := c.fit(&q, &s.Layout)
	if err != nil {
		return err
	}
	if s.Source128 == nil {
		b, err := s.Source.NextBatch(ctx, q.count)
		return answer64(c, q, format, b, err)
	}
	b, err := s.Source128.NextBatch(ctx, q.count)
	return answer128(c, q, format, b, err)
}

// tryAnswer is answerFrom for IDs that are available without waiting.
func (c *conn) tryAnswer(s *service.Sequencer, q request) error {
	format, err := c.fit(&q, &s.Layout)
	if err != nil {
		return err
	}
	if s.Try128 == nil {
		b, err := s.Try.TryNextBatch(q.count)
		return answer64(c, q, format, b, err)
	}
	b, err := s.Try128.TryNextBatch(q.count)
	return answer128(c, q, format, b, err)
}

func answer64(c *conn, q request, format firn.Format, b firn.Batch, err error) error {
	if q.shape == shapeRuns {
		return answerRuns(c, q, b, err, func(id firn.ID) []byte { return format.Append(c.ids[:0], id) })
	}
	return answer(c, q, 8, b, err, func(id firn.ID) bool { return c.append64(q, format, id) })
}

func answer128(c *conn, q request, format firn.Format, b firn.Batch128, err error) error {
	if q.shape == shapeRuns {
		return answerRuns(c, q, b, err, func(id firn.ID128) []byte { return format.Append128(c.ids[:0], id) })
	}
	return answer(c, q, 16, b, err, func(id firn.ID128) bool { return c.appendID(format.Append128(c.ids[:0], id), q.shape) })
}

// answerRuns answers with the runs of a batch; text formats their first IDs.
func answerRuns[I firn.AnyID[I]](c *conn, q request, b firn.BatchOf[I], err error, text func(I) []byte) error {
	if err = service.CheckLen(b.Len(), q.count, err); err != nil {
		return err
	}
	runs := b.Runs()
	c.out = appendArray(c.out, len(runs))
	for _, r := range runs {
		c.out = appendBulk(appendArray(c.out, 3), text(r.First))
		c.out = appendInt(appendBulk(c.out, strconv.AppendUint(c.ids[:0], r.Step, 10)), int64(r.Count))
		if len(c.out) >= flushAt {
			c.flush()
		}
	}
	return nil
}

// answer answers with the IDs of a batch, of size bytes each; each appends one.
func answer[I firn.AnyID[I]](c *conn, q request, size int, b firn.BatchOf[I], err error, each func(I) bool) error {
	if err = service.CheckLen(b.Len(), q.count, err); err != nil {
		return err
	}
	c.begin(q, size)
	if q.shape == shapePacked {
		appendPacked(c, b)
		return nil
	}
	b.All()(each)
	return nil
}

// append64 is appendID for a 64-bit ID, which may be returned as an integer.
func (c *conn) append64(q request, format firn.Format, id firn.ID) bool {
	if q.shape == shapeInt {
		c.answerInt(q, id)
		return true
	}
	return c.appendID(format.Append(c.ids[:0], id), q.shape)
}

// packedAtOnce is how many IDs are packed before the answers may be sent.
const packedAtOnce = 256

// appendPacked appends the IDs as the content of a packed bulk string.
func appendPacked[I firn.AnyID[I]](c *conn, b firn.BatchOf[I]) {
	for lo := 0; lo < b.Len() && c.err == nil; lo += packedAtOnce {
		c.out = b.AppendRaw(c.out, lo, min(lo+packedAtOnce, b.Len()))
		if len(c.out) >= flushAt {
			c.flush()
		}
	}
	c.out = append(c.out, "\r\n"...)
}

// answerOne is answerFrom for one ID of a sequencer that can make one without
// waiting.
func (c *conn) answerOne(k *known, q request) error {
	format, err := c.fit(&q, &k.q.Layout)
	if err != nil {
		return err
	}
	if k.q.Try != nil {
		id, err := k.q.Try.TryNext()
		if err != nil {
			return err
		}
		c.begin(q, 8)
		c.append64(q, format, id)
	} else {
		id, err := k.q.Try128.TryNext()
		if err != nil {
			return err
		}
		c.begin(q, 16)
		c.appendID(format.Append128(c.ids[:0], id), q.shape)
	}
	if q.shape == shapePacked {
		c.out = append(c.out, "\r\n"...)
	}
	return nil
}

// fit completes the request for the layout of its sequencer, or returns an
// error if it does not fit. It runs before any ID is taken.
func (c *conn) fit(q *request, l *firn.Layout) (firn.Format, error) {
	switch {
	case q.shape == shapeRuns && !l.HasRuns():
		return 0, requestErrorf("%s: IDs of layout %s do not form runs: use NEXTB %s", service.NoRuns, *l, q.name)
	case q.shape != shapeInt:
	case l.Bits() != 64:
		return 0, requestErrorf("INCR returns a 64-bit integer, but IDs of layout %s have %d bits: use NEXT %s", *l, l.Bits(), q.name)
	case c.s.c.RefuseUnsafe && !isSafe(l):
		return 0, requestErrorf("IDs of layout %s exceed 2^53, where JavaScript rounds integers, and this server does not return them as integers: use NEXT %s", *l, q.name)
	}
	if !q.hasFormat {
		return l.Format(), nil
	}
	if err := q.format.Fits(l.Bits()); err != nil {
		return 0, requestError(service.Detail(err))
	}
	return q.format, nil
}

// begin begins an answer with IDs of size bytes.
func (c *conn) begin(q request, size int) {
	switch q.shape {
	case shapeArray:
		c.out = appendArray(c.out, q.count)
	case shapePacked:
		c.out = appendHead(c.out, '$', q.count*size)
	}
}

// appendID appends an ID to the answer, and reports whether the client can
// still receive answers.
func (c *conn) appendID(text []byte, shape shape) bool {
	if shape == shapePacked {
		c.out = append(c.out, text...)
	} else {
		c.out = appendBulk(c.out, text)
	}
	if len(c.out) >= flushAt {
		c.flush()
	}
	return c.err == nil
}
