package respapi

import (
	"fmt"
	"log/slog"
	"math"

	"github.com/firnid/firn"
)

// maxSafe is the highest integer that is exact in a JavaScript number, as are
// all below.
const maxSafe = 1<<53 - 1

// isSafe reports whether all IDs of a layout are exact in a JavaScript number.
func isSafe(l *firn.Layout) bool {
	highest, err := l.Compose(firn.Parts{Time: l.Last(), Node: l.MaxNode(), Seq: l.MaxSeq()})
	return err == nil && uint64(highest) <= maxSafe
}

// answerInt answers an INCR. An ID that is no int64 is lost: which one comes is
// not known before.
func (c *conn) answerInt(q request, id firn.ID) {
	if uint64(id) > math.MaxInt64 {
		c.fail(codeErr, fmt.Sprintf("the ID %d does not fit an integer of RESP, which is signed: use NEXT %s", uint64(id), q.name))
		return
	}
	if uint64(id) > maxSafe && !c.s.warned.Load() && c.s.warned.CompareAndSwap(false, true) {
		c.s.c.Log.LogAttrs(c.requestContext(), slog.LevelWarn, "INCR answered an integer above 2^53: JavaScript clients round it without an error",
			slog.String("sequencer", string(q.name)), slog.String("client", c.library.name),
			slog.String("hint", "use NEXT, which answers strings; --resp-integers refuse-unsafe makes such INCR an error"))
	}
	c.out = appendInt(c.out, int64(id))
}
