package respapi

import (
	"log/slog"
	"math"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/service"
)

// maxSafe is the largest integer up to which all are exact in a JavaScript
// number.
const maxSafe = 1<<53 - 1

// isSafe reports whether all IDs of a layout are exact in a JavaScript number.
func isSafe(l *firn.Layout) bool {
	highest, err := l.Compose(firn.Parts{Time: l.Last(), Node: l.MaxNode(), Seq: l.MaxSeq()})
	return err == nil && uint64(highest) <= maxSafe
}

// fitInt returns a problem if IDs of a layout cannot be returned as integers.
func (c *conn) fitInt(l *firn.Layout, name string) *service.Problem {
	switch {
	case l.Bits() != 64:
		return service.Problemf(service.BadParameter, "INCR returns a 64-bit integer, but IDs of layout %s have %d bits: "+
			"use NEXT %s", *l, l.Bits(), name)
	case c.server.config.RefuseUnsafe && !isSafe(l):
		return service.Problemf(service.BadParameter, "IDs of layout %s exceed 2^53, where JavaScript rounds integers, "+
			"and this server does not return them as integers: use NEXT %s", *l, name)
	}
	return nil
}

// answerInt answers an INCR. An ID that exceeds int64 is lost: the ID is not
// known before it is taken.
func (c *conn) answerInt(name string, id uint64) {
	if id > math.MaxInt64 {
		c.failProblem(service.Problemf(service.BadParameter,
			"the ID %d does not fit the signed integers of RESP: use NEXT %s", id, name), name)
		return
	}
	if id > maxSafe && !c.server.warned.Load() {
		c.warnUnsafe(name)
	}
	c.out = appendInt(c.out, int64(id))
}

// warnUnsafe logs the first integer above 2^53.
func (c *conn) warnUnsafe(name string) {
	if c.server.warned.CompareAndSwap(false, true) {
		c.server.front.Logger.LogAttrs(c.requestContext(), slog.LevelWarn,
			"INCR returned an integer above 2^53, which JavaScript clients round without an error",
			slog.String("sequencer", name), slog.String("client", c.library.name),
			slog.String("hint", "use NEXT, which returns strings; --resp-integers refuse-unsafe makes such an INCR an error"))
	}
}
