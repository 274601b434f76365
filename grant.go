package firn

import (
	"time"
)

// A Grant is the exclusive right to make IDs with a node ID for the times in
// [From, Until), which is called a window. It is plain data.
//
// A zero From means that it is unknown when the node ID was used before; see
// StaticGrant. A zero Until means no end. A generator rounds From up to a tick
// and Until down.
type Grant struct {
	Node  uint64    // 0 to the layout's MaxNode
	From  time.Time // inclusive
	Until time.Time // exclusive
}

// StaticGrant returns the grant of a node ID that the caller keeps unique, for
// example by configuration. It has no time limits.
//
// A generator with a static grant starts MaxAhead and one tick after a
// reference time: the start of the process for the first such generator, and
// the time when it was made for a later one. So TryNext can succeed from the
// second tick of a process on, and a process that restarts immediately repeats
// no ID. IDs can repeat if
//   - the previous process, or generator, with the node ID still made IDs after
//     the reference, or had a larger MaxAhead; or
//   - the clock was set back since.
//
// Only a node ID held through a store is safe from that. With Options.Now, in a
// synctest bubble and after Switch, the reference is the clock at the first
// call.
//
// A batch under a static grant spans at most one minute, or what MaxAhead
// allows at once if that is more, because the grant has no end to bound it. A
// larger batch fails with ErrBatchTooLarge. Reservations run ahead of the time
// that MaxAhead allows by the same span at most. A restarted process does not
// know of reservations, so do not release a reserved batch from the process
// before its hold has ended.
func StaticGrant(node uint64) Grant { return Grant{Node: node} }
