package respapi

import (
	"fmt"
	"log/slog"
	"math"

	"github.com/firnid/firn"
)

// maxSafe is the largest integer up to which all are exact in a JavaScript
// number.
const maxSafe = 1<<53 - 1

// isSafe reports whether all IDs of a layout are exact in a JavaScript number.
func isSafe(l *firn.Layout) bool {
	highest, err := l.Compose(firn.Parts{Time: l.Last(), Node: l.MaxNode(), Seq: l.MaxSeq()})
	return err == nil && uint64(highest) <= maxSafe
}

// answerInt answers an INCR. An ID that exceeds int64 is lost: the ID is not
// known before it is taken.
func (c *conn) answerInt(q *request, id uint64) {
	if id > math.MaxInt64 {
		c.fail(fmt.Sprintf("the ID %d does not fit the signed integers of RESP: use NEXT %s", id, q.name))
		return
	}
	if id > maxSafe && !c.server.warned.Load() && c.server.warned.CompareAndSwap(false, true) {
		c.server.config.Logger.LogAttrs(c.requestContext(), slog.LevelWarn, "INCR returned an integer above 2^53, which JavaScript clients round without an error",
			slog.String("sequencer", string(q.name)), slog.String("client", c.library.name),
			slog.String("hint", "use NEXT, which returns strings; --resp-integers refuse-unsafe makes such an INCR an error"))
	}
	c.out = appendInt(c.out, int64(id))
}
