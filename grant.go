package firn

import "time"

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
// A generator with a static grant starts one tick after the clock at its first
// call plus MaxAhead. So a process that restarts immediately repeats no ID, as
// long as its MaxAhead is no smaller than before. This relies on the clock: IDs
// can repeat if the clock is set back while the process is down, or if two
// processes have the node ID at the same time. Only a node ID held through a
// store is safe from both.
//
// A batch under a static grant spans at most one minute, or what MaxAhead
// allows at once if that is more, because the grant has no end to bound it. A
// larger batch fails with ErrBatchTooLarge. Reservations run ahead of the time
// that MaxAhead allows by the same span at most. A restarted process does not
// know of reservations, so do not release a reserved batch from the process
// before its hold has ended.
func StaticGrant(node uint64) Grant { return Grant{Node: node} }
